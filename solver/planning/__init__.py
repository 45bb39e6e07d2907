"""Search for plans: partition, placement, recomputation and order of passes, with a lower bound over all plans.

- `plan.py` is the call; `search/` goes over placements and partitions, `joint/` over partition and order at once.
- `partitions/` has bounds and first partitions of one placement, `quick/` first plans of `layouts`.
- `bounds_of_plans.py` has what holds for every plan, `infeasible.py` the reason where there is none.
"""
