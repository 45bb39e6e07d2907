"""The phases of the engine that look for lower bounds, one a file."""
