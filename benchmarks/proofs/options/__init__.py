"""Options of commands on tiny drawn files: what each answer claims, against the optimum under what the options mean.

- `drawn.py` draws files, `claim.py` compares a claim with the optimum, `meant.py` has the documents that options mean.
- `of_problems.py` and `of_plans.py` run the commands, an option set each; `attack.py` draws which.
"""
