"""The validator: the rules of schedules, stated independently of solver and simulator.

- `validator.py` is the call; `order_rules.py` has what orders must obey, `time_rules.py` overlaps and precedences.
- `memory_rule.py` is the capacity over time, `pass_rules.py` what each pass needs, takes and frees.
- Others are of one kind of schedule: `repetition.py` periods, `gather_rules.py` gathered parameters, `state_rules.py`
  replanned iterations, `task_order_rules.py` orders by stream.
"""
