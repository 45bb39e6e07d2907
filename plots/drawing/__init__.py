"""What pictures share: frame, zoom, labels, marks, boxes of streams, legend."""
