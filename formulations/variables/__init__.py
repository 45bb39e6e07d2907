"""Decision variables of the exact model: operations with start and end, and order literals.

- `model_variables.py` is the `Model` that constraints post on; `operations.py` has what is to be timed.
- `resource_order.py` makes order literals, but where the order is known (`known_order.py`, `forced_by_memory.py`);
  `literal_count.py` counts them beforehand, `blocks.py` has the overlapped blocks to choose.
"""
