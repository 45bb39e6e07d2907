"""Options of commands on tiny drawn files: what each answer claims, against the optimum under what the options mean.

- `drawn.py` draws files, `claim.py` compares a claim with the optimum, `meant.py` has the documents that options mean.
- `by_hand.py` works out plain plan and schedule files from their numbers; `refusals.py` lists what may be refused.
- `of_problems.py`, `of_states.py`, `of_plans.py` and `of_layouts.py` run the commands; `attack.py` draws which.
"""
