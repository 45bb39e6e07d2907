"""Analytic lower bounds, one argument per file; each is tested against exhaustive enumeration.

- `catalogue.py` is the registry, and computes all of them, each of its relaxed problem.
- `critical_paths.py` and `heads_and_tails.py` have least times between passes, `stream_chains.py` between tasks;
  `idle_time/` and `modes/` what several bounds need.
"""
