"""Questions about a solved problem: sensitivity, bottleneck, least memory, Pareto frontier, robustness."""
