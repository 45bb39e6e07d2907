"""Results of analyses of a problem: explanation, frontier of time and memory, least memory, robustness to noise.

- `explanation.py`, with its bottleneck in `bottleneck.py`, as text in `explanation_text.py` and as JSON in
  `explanation_document.py`.
- `frontier.py`, `least_memory.py` (in the measure of `memory_scale.py`) and `robustness.py` are a result each.
"""
