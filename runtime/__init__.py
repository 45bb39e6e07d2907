"""Exchange of schedules with other programs, in both directions, and their execution with PyTorch and Megatron-Core.

- `exporters/` and `importers/` have a module a format; `exporters/catalogue.py` says what each can express and how its
  files are named, `exporters/restrictions.py` what a search keeps for it.
- `lowering/` adds sends and receives and proves that the program ends.
- `partitions/` writes the layers of stages as settings of a trainer, `traces/` reads measured passes.
- `running/` and `execution/` have what all executors share; `pytorch/` and `megatron/` are the executors; `profiling/`
  makes a problem of measured times.
"""
