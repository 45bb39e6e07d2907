"""Partitions of a model's layers as settings of training runtimes, written and read, one module for each format.

- `catalogue.py` is the registry; a runtime's file registers its format with `limits`, by which `plan_limits.py`
  restricts a plan before its search (`plan --for`); `setting_limits.py` has refusals that several share.
- Megatron-LM: `megatron.py` by its flags, `megatron_hook.py` with recomputation by stage, `megatron_order.py` in the
  plan's own order (`megatron_own_order.py`: what that runs), `megatron_hybrid.py` of plain transformers as hybrid
  models (`megatron-hybrid`, `megatron-hybrid-order`). The partition is a layout (`megatron_layout.py`), or of hybrid
  models a pattern (`megatron_hybrid_pattern.py`); `job_flags.py` has the user's flags to leave out.
- `staged_model.py` is the plan that formats write, `plan_settings.py` chooses it, `partition_from.py` reads settings.
"""
