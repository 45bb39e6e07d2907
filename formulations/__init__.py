"""CP-SAT models of a problem: variables, one constraint per file, and objectives.

- `jobs/` lists what is to be timed: each task of each micro-batch, with precedences, modes and memory, and in steps
  so fine that a task of no duration still takes one.
- `variables/` makes the decision variables of jobs, with the orders that are known beforehand; `constraints/` has a
  rule a file; `exact/` puts both together with an objective.
- `window/` orders a part of a schedule again, `cyclic/` one period, `partition/` the layers of a model.
"""
