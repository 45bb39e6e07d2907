"""Every feature of problem and plan files as a switch, and all pairs and triples of them through every command.

- `problem_switches.py` and `plan_switches.py` have the switches (`switch.py`), `draw.py` a document of some of them.
- `case_run.py` and `plan_run.py` run one case, with `commands_of.py`, `page_calls.py`, `mutations.py`, `numbers.py`,
  `relaxations.py`, `states.py` and `equal_documents.py`; `exact/` has the optimum of an own model.
- `work.py` runs many, `store.py` keeps each `outcome.py`, `page.py` writes the page.
"""
