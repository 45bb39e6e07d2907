"""Features of plan files, one module each: keys, checks, part of the plan problem, and exact document."""
