"""The web application of `pipesched serve`: a page for simulation, search, pictures and exports.

- `app.py` has the addresses, `answers.py` what each answers, `guards.py` the checks of requests, `settings.py` limits.
- `quick.py` runs what takes seconds, `solves.py` the searches, each in a process (`processes.py`) on a task of `work/`.
- `form.py`, `text_edits.py` and `problem_texts.py` are the problem on the page; `static/` is the page itself.
"""
