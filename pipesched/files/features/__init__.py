"""Features of problem files, one module each: keys, checks, conversion into a `Problem`, and what it excludes.

- `catalogue.py` says what a feature states, and in which order features apply.
- `rendezvous.py` is the key `both` (blocking transfers), `microbatch_scale.py` unequal micro-batches, `frozen.py`
  stages before all that train; the others are named after their keys.
- `pipesched/problem/` has what each of them means for tasks and memory, mostly in `problem/features/`.
"""
