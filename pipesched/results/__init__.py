"""Results of searches as commands, plots and stores read them: solutions, plans, certificates and evidence.

- `solution.py` is the result of `solve`, `plan.py` of `plan`, `layouts.py` of `layouts`, `comparison.py` of `compare`;
  their `document` is what `--json` prints.
- `certificate.py` is a bound with its argument in words, `evidence.py` the data by which it is checked, and
  `evidence_document.py` writes and reads that.
- `gap.py` has the gap, `bound_names.py` the names of bounds on screen, `tabular.py` tables in notebooks.
"""
