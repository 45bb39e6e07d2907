"""Named mutants, a file an area."""
