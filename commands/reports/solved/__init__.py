"""Reports of `solve`, and of its additional questions.

- `solve.py` is the whole report; `recommendation.py` chooses the recommended schedule.
- `robustness.py` says the line under noise; samples are drawn in `solver/analysis/robustness.py`.
"""
