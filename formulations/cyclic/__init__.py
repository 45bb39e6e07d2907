"""CP-SAT model of one period of a schedule that repeats itself, and exact evaluation of its solutions.

- `block_graph.py` is the work of one micro-batch, `periodic_model.py` the model for a given length, `cyclic_order.py`
  its constraints on one device; `sequential_pattern.py` is the pattern of least memory.
- `pattern.py` is a solution, whose least period `cycle_ratio.py` computes.
"""
