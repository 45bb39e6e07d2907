"""Constraints of a schedule, one per file, each stated twice: as a check in plain Python and for CP-SAT."""
