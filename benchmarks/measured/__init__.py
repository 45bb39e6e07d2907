"""Published measurements of training steps, what the formulas predict of each, and how far that is off.

Rows are read by `table.py`, predicted by `prediction.py` and kept in `stored.py`; `figures.py` and `ratios.py` have
errors, `judged.py` those of first predictions, `rivals.py` those of other models, `tables.py` the page. Rates of
devices are fitted by `fit.py`, along the critical paths of `path_steps.py`.
"""
