"""Questions about a solved problem: sensitivity, bottleneck, least memory, Pareto frontier, robustness.

- `sensitivity.py` is `--explain`, `min_memory.py` is `--then-memory`, `pareto_sweep.py` is `frontier`.
- `robustness.py` draws the durations of the line under noise; results are in `pipesched/results/analysis/`.
"""
