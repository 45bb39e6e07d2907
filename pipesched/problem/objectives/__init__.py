"""The objectives that a problem or plan may name, one a file."""
