"""Construction of problems with several chains of stages: for unequal micro-batches, pieces, replicas, and modules.

- `microbatch_chains.py`: unequal micro-batches; `sequence_chunks.py`: pieces; `data_parallel.py`: replicas with lost or
  slow workers; `with_modules.py`: modules and their trunk. `chain_groups.py` says which chains wait for each other.
"""
