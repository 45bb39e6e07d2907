"""Features of plan files, each a module: its keys, their checks, its part of the plan problem, its exact document."""
