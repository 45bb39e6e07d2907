"""CP-SAT models of a problem: variables, one constraint per file, and objectives."""
