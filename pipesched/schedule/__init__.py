"""Schedules (orders), timelines (times) and their metrics.

- `schedule.py` has the order of passes and tasks, `timeline.py` the start of each, `start_table.py` many of them.
- `metrics.py` computes makespan, span, idle time and peak memory; `stream_use.py` the exposed time of streams,
  `memory_elsewhere.py` the memory of hosts and partners.
- `gathered.py` reads which gathering of parameters a pass uses; `once_an_iteration.py` adds collectives to an order.
- `drawing/` has the boxes and colours of passes that all pictures share.
"""
