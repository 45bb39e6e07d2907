"""The subsolvers that look for lower bounds, one a file."""
