"""The simulator: start times for an order, exact or under random durations.

- `simulator.py` is the call, with the graph of `precedence_graph.py` and the loops of `longest_path.py`; a cycle of
  waits is a `Deadlock`.
- `noise.py` and `sampled_durations.py` simulate other durations; `critical_path.py` and `idle_causes.py` say why a
  timeline takes as long as it does.
"""
