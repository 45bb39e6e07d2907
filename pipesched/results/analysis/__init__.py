"""Results of analyses of a problem: its explanation, the frontier of time and memory, least memory, robustness."""
