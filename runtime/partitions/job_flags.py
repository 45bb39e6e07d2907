"""Flags of a user's Megatron job that would override a plan's flags, and therefore have to be left out.

Of a flag that is given twice the last value counts, so a plan's flags are placed after the job's. A flag without a
value cannot be taken back, and some exclude each other (validate_args in megatron/training/arguments.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import TextWrapper

from runtime.partitions.staged_model import StagedModel

# All of them say where stages are cut, which the layout or the pattern says.
_STAGES = (
    "num-layers-per-virtual-pipeline-stage",
    "num-virtual-stages-per-pipeline-rank",
    "pipeline-model-parallel-layout",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
)
# `--recompute-activations` means selective, whatever the granularity says.
_RECOMPUTATION = (
    "recompute-activations",
    "recompute-granularity",
    "recompute-method",
    "recompute-num-layers",
    "recompute-modules",
    "distribute-saved-activations",
    "moe-layer-recompute",
)
_OFFLOAD = ("cpu-offloading", "cpu-offloading-num-layers", "fine-grained-activation-offloading")
_CONTEXT = ("hierarchical-context-parallel-sizes", "hybrid-context-parallel")
_WIDTH = 118


def to_leave_out(model: StagedModel, flags: Mapping[str, object]) -> list[str]:
    """Return the names, without `--`, of flags that would contradict the plan if a job gave them.

    Those among `flags` are not included: `flags` follow the job's own, so that their values count.
    """
    found = list(_STAGES)
    if model.decides_recomputation:
        found += _RECOMPUTATION
    if model.step is not None:
        shared = model.step.parallel
        found += _OFFLOAD
        found += _CONTEXT if shared.context == 1 else ()
        found += ("sequence-parallel",) if shared.tensor == 1 else ()
        found += () if shared.sharded_optimizer else ("use-distributed-optimizer",)
        found.append("rampup-batch-size")
    return [name for name in found if name not in flags]


def leave_out_lines(model: StagedModel, flags: Mapping[str, object], keys: bool = False) -> list[str]:
    """Return comment lines for the head of a file that name the flags `to_leave_out`.

    With `keys` they are named as keys of a configuration file, with `_` for `-`. If the plan does not say the model's
    longest position, a last line gives the job's least one.
    """
    names = [name.replace("-", "_") if keys else f"--{name}" for name in to_leave_out(model, flags)]
    flag = "keys" if keys else "flags"
    lines = [
        f"To append to the job's own {flag}, without these of its own, which contradict the plan: {' '.join(names)}"
    ]
    if model.step is not None and model.step.longest is None:
        name = "max_position_embeddings" if keys else "--max-position-embeddings"
        lines.append(f"The job's {name} is at least {model.step.sequence}.")
    # Indented, so that no line of flags to leave out looks like one of flags to give.
    wrapper = TextWrapper(_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [f"# {line}" for text in lines for line in wrapper.wrap(text)]
