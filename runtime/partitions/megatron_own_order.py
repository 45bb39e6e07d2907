"""Plans that run in their own order inside Megatron-LM: limits of the module of `export --format megatron`."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.placement import v_shape
from runtime.partitions.plan_limits import PlanLimits
from runtime.partitions.setting_limits import every_stage_trains, loop, one_chain
from runtime.partitions.staged_model import StagedModel

ORDER_NOTE = "Megatron runs this plan's order with the module of `export --format megatron` imported, and else its own."
# Of every model that the module runs; recomputation and multi-token prediction depend on how the model is built.
OWN_ORDER = PlanLimits(
    ("linear", "interleaved", "v-shape"),
    RecomputeRule.ANY,
    without_mtp=("v-shape",),
    groups=True,
    every_stage_trains=True,
)


def check_stages(name: str, model: StagedModel) -> None:
    """Raise `BadInput` for stages that the module does not run; the message begins with `name`, that of the format.

    It runs one chain in which every stage trains, with stage s on device s mod p, or in a V; in a V, which Megatron
    itself does not have, without multi-token prediction layers.
    """
    one_chain(name, model)
    every_stage_trains(name, model)
    if model.placement.stage_device != v_shape(model.devices).stage_device:
        loop(name, model)
    elif model.mtp:
        raise BadInput(f"{name}: not supported: multi-token prediction layers with stages in a V")
