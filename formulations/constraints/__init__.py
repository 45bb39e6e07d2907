"""The rules of a schedule, one a file, each stated twice: as a check in plain Python and as rows for CP-SAT."""
