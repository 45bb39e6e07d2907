"""Features of problem files, each a module: its keys, their checks, the problem they mean, and who cannot have it."""
