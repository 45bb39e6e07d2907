"""Options of jobs by which computation hides the exchange of gradients and weights, as shares that are hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A key of the section `hardware`: its value, and a comment on what the job says.
Hidden = Mapping[str, tuple[str, str]]

_ALL, _NONE = "100%", "0%"
# Of gradients during backwards, and of weights during forwards: in Megatron-LM and Megatron-Bridge, and in NeMo's
# optimizer (Apex's distributed Adam).
_GRADIENTS, _WEIGHTS = ("overlap_grad_reduce", "overlap_grad_sync"), ("overlap_param_gather", "overlap_param_sync")
_AFTER = "gradients are reduced after the last backward"
_GATHERED = "weights are gathered after the optimizer's step"


def hidden_shares(values: Mapping[str, Any], all_options: bool) -> Hidden:
    """Return `data_hidden_share` and `gather_hidden_share` of the section `hardware`, where a job's options decide.

    A share is `100%` or `0%`, with a comment; a key that nothing decides is left out. `values` are Megatron's arguments
    by name. `all_options`: they are a whole job's, in which what is not there is off, as it is by default in
    Megatron-LM; else nothing is said of it. Megatron of before `--overlap-grad-reduce` (2023) reduces after the last
    backward with `--DDP-impl local`, and during it with `torch`.
    """
    if _is_on(values.get("deepspeed")):
        return _of_deepspeed(values)
    reduced, name = _first(values, _GRADIENTS)
    gathered, of_weights = _first(values, _WEIGHTS)
    if reduced is None and "DDP_impl" in values:
        local = str(values["DDP_impl"]) == "local"
        return {"data_hidden_share": (_NONE, f"DDP_impl local: {_AFTER}")} if local else {}
    if reduced is None and all_options and not _has_own_sharding(values):
        return {"data_hidden_share": (_NONE, f"assumed: without overlap_grad_reduce {_AFTER}")}
    if reduced is None:
        return {}
    if not reduced:
        return {"data_hidden_share": (_NONE, f"{name} is off: {_AFTER}")}
    found = {"data_hidden_share": (_ALL, f"{name}: the last backward hides gradients")}
    if gathered is not None:
        hides = f"{of_weights}: the next forward hides weights"
        found["gather_hidden_share"] = (_ALL, hides) if gathered else (_NONE, f"{of_weights} is off: {_GATHERED}")
    elif all_options and _is_on(values.get("use_distributed_optimizer")):
        found["gather_hidden_share"] = _NONE, f"assumed: without overlap_param_gather {_GATHERED}"
    return found


def _of_deepspeed(values: Mapping[str, Any]) -> Hidden:
    """Return the shares of a job of DeepSpeed, whose optimizer's step ends with gathering weights (ZeRO 1 and 2).

    `overlap_comm` has an effect without a pipeline alone: `PipelineEngine` reduces gradients after all backwards. Empty
    with ZeRO 3, which exchanges in every pass, and where no option decides.
    """
    after = _NONE, _GATHERED
    if str(values.get("zero_stage")) == "3":
        return {}
    stages = str(values.get("pipeline_model_parallel_size", 1))
    if stages.isdecimal() and int(stages) > 1:
        return {"data_hidden_share": (_NONE, f"DeepSpeed's pipeline: {_AFTER}"), "gather_hidden_share": after}
    overlapped = values.get("overlap_comm")
    if overlapped is None:
        return {}
    if not _is_on(overlapped):
        return {"data_hidden_share": (_NONE, f"overlap_comm is off: {_AFTER}"), "gather_hidden_share": after}
    return {"data_hidden_share": (_ALL, "overlap_comm: backwards hide gradients"), "gather_hidden_share": after}


def _has_own_sharding(values: Mapping[str, Any]) -> bool:
    """Return True if PyTorch's FSDP or Megatron's shards parameters, whose exchange other options decide."""
    return any(_is_on(values.get(name)) for name in ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp"))


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> tuple[bool | None, str]:
    """Return (True if it is on, name) of the first of some options that is given.

    If none is given, None and the first name.
    """
    name = next((one for one in names if values.get(one) is not None), names[0])
    return (None if values.get(name) is None else _is_on(values[name])), name


def _is_on(value: object) -> bool:
    return str(value).lower() in ("true", "1")
