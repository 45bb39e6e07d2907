"""The check of a bound over all partitions of a placement: `by_device.py`, with the stages of `stage_options.py`."""
