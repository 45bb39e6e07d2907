"""Building blocks of heuristics: requirements on a problem, serial schedule generation."""
