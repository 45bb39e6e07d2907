"""Analytic lower bounds, one argument per file; each is tested against exhaustive enumeration."""
