"""The task network of a pipeline iteration: tasks, precedences, and the memory that passes take.

- `task_network.py` is the network, made by `pipesched/problem/lowering/`; `share.py` says which micro-batches of
  another chain one waits for, `open_ends.py` on which devices an iteration may begin or end.
"""
