"""The parts of a search that look for lower bounds, one a file."""
