"""Attacks on proofs: problems aimed at every branch of every bound, exact spans, mutants of the code.

- `attack.py` attacks all kinds of tiny problems, of which `free_memory.py`, `memory_options.py`, `partners_memory.py`,
  `activation_modes.py`, `shared_digits.py`, `tasks_at_once.py`, `unequal_problems.py`, `spans.py` and `arguments.py`
  have the claims; `plan_attack.py` and `frozen_plans.py` attack plans.
- `bound_attack.py` attacks the branches of bounds in `bound_branches.py`, `diagram_branches.py` and
  `further_bounds.py`, each a `Branch` of `branch.py`, on problems of `bound_problems.py` and `branch_conditions.py`.
- `evidence_mutations.py` forges certificates; `mutants.py` and `named_mutants.py` change the program.
"""
