"""HTML pages that need no network: the interactive chart of schedules, and reports.

- `page.py` is the page of a schedule, `report.py` a report made of `parts.py`; `document.py` has the data of the chart,
  `packed.py` compresses it, `assets.py` has the scripts of `chart/`.
"""
