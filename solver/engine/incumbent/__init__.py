"""State of a search: its start, the best schedule and bound, and the conversion of both to common ticks.

- `incumbent.py` validates or checks what is offered or claimed, and turns errors of subsolvers into notes; `state.py`
  is its immutable record.
- `start.py` begins from the user's schedule, `unequal.py` from a problem with a chain for each factor.
- `common_ticks.py` states value and bound in ticks in which both are integers.
"""
