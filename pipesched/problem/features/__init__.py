"""Parts of a problem other than stages: modules, arcs between chains, shared resources, modes of saving memory.

- `device_resources.py` has streams, hosts and capacities (`Pool`), `walks.py` the micro-batches of each chain,
  `parameters.py` stages that share parameters, `gather_each_pass.py` gathering as FSDP does.
- `saved_activations.py` is offload and recomputation: passes, modes and memory.
- `chain_arcs.py`, made of `stage_arc.py` and `module.py`, is what passes of different chains wait for.
"""
