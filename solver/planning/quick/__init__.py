"""Plans without a search, which `layouts` uses: 1F1B orders on cuts made directly, timed exactly without a timeline.

- `quick_plan.py` chooses the best one; the first plans of `plan` are in `solver/planning/search/first_plans.py`.
"""
