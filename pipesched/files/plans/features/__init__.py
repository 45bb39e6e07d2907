"""Features of plan files, one module each: keys, checks, effect on the plan problem, and keys of its exact document."""
