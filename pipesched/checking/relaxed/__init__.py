"""The relaxed problems to which evidence refers; each relaxation is implemented here independently of the solver.

- `posed.py` applies them in order: `parameters.py` (what an iteration runs for parameters), `microbatches.py` (unequal
  ones as chains), `lookups.py`, `arcs.py` (between chains), `further_resources.py`, `single_tasks.py`.
- Of memory: `pass_memory.py`, `least_memory.py`, `taken_by_modes.py`, `memory_of_partners.py`.
"""
