"""The problems that the benchmarks measure, and the aims set for them.

- Drawn for a seed: `drawn_problems.py`, `drawn_tasks.py`, `drawn_plans.py`, `random_problems.py`; from papers:
  `profiles.py`, `plan_cases.py`.
- `engine_subsolvers.py` names what the ablation leaves out, `torchtitan_job.py` is a process of torchtitan.
"""
