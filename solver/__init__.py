"""The search for schedules and plans: lower bounds with certificates, construction heuristics, subsolvers, `solve`.

- `solve.py` is the call, `limits.py` its limits (time, cores, seed, gap), `engine/` the search that it runs.
- Schedules: `published.py` simulates those of papers; `construction/` makes first ones by rules; `beam/` and
  `local_search/` search orders of passes; `tasks/` orders of tasks on several streams.
- Bounds: `bounds/` by arguments, `diagram/` by decision diagrams, `backends/` by CP-SAT (models in `formulations/`).
- Further questions: `planning/` (cut a model into stages), `analysis/` (sensitivity, frontier, least memory),
  `cyclic/` (objective `period`), `replanning/` (an iteration under way), `sweeps/` (many problems).
- Numbers that tune a search are fields in the module of its algorithm; `parameters.py` says how they are declared.
"""
