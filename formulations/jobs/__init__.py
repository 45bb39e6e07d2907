"""Tasks of all micro-batches as jobs: precedences, choices, memory, and schedules of them with times.

- `jobs.py` is what models and task searches read; `jobs_of_problem.py` makes it of a problem, `jobs_that_remain.py` of
  an iteration under way; `gathers.py` has gathered parameters.
- `placed_jobs.py` is a schedule with times, `schedule_of_starts.py` its orders and waits.
"""
