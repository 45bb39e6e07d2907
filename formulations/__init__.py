"""From a problem to a CP-SAT model: variables, one constraint a file, objectives."""
