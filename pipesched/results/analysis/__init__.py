"""What analyses of a problem bring: its explanation, the frontier of time and memory, least memory, robustness."""
