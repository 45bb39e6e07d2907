"""Shared parts of pictures: frame, zoom, labels, marks, boxes of streams, legend."""
