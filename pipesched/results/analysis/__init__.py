"""Results of analyses of a problem: explanation, frontier of time and memory, least memory, robustness to noise."""
