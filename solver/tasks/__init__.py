"""Search at task level, for problems whose passes consist of several tasks on several streams.

- `dispatch.py` schedules tasks by ranks; `policy/` searches for rules, `rank_search.py` for ranks, `tabu/` moves tasks
  of critical blocks, `window_search.py` asks CP-SAT for windows.
- `as_stages.py` makes tasks plain stages, for bounds; `pair.py` is the optimal pair of a forward and a backward.
- `saving_modes.py` and `memory_decisions.py` choose activations to offload or recompute.
"""
