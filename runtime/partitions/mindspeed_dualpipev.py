"""Settings for MindSpeed's DualPipeV: `--schedules-method dualpipev`, with equal stages in a V.

Its order is `dualpipe-v` with `--dualpipev-dw-detach`, which splits the backwards of the cool-down too
(`generate_dualpipev_schedule` in mindspeed/core/pipeline_parallel/dualpipev/dualpipev_schedules.py). Limits are those
of `validate_args` in mindspeed/features_manager/pipeline_parallel/dualpipev_feature.py, and the 2p micro-batches that
docs/zh/features/dualpipev.md asks for.
"""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.problem.placement import v_shape
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.list_texts import between_embedding_and_head, check_total, numbers
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import (
    all_or_none,
    known_modes,
    microbatches_a_device,
    mtp_on_last_stage,
    one_chain,
)
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME, _ORDER = "mindspeed-dualpipev", "dualpipe-v"


def _write(model: StagedModel) -> PartitionSettings:
    _check(model)
    share = model.counts[0].layers
    flags: dict[str, object] = {
        "pipeline-model-parallel-size": model.devices,
        "num-layers": model.layers,
        "schedules-method": "dualpipev",
        "dualpipev-dw-detach": True,
        "untie-embeddings-and-output-weights": True,
    }
    if model.mtp:
        flags["mtp-num-layers"] = model.mtp
    if all_or_none(_NAME, model, FULL, "--recompute-method uniform"):
        flags |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1}
    notes: tuple[str, ...] = ()
    if model.schedule != _ORDER:
        notes += (f"MindSpeed runs {_ORDER}: its time is that of a plan with `schedule: {_ORDER}`.",)
    notes += (
        "--moe-fb-overlap runs a forward and a backward as one block, as plans with `overlapped` on layers count.",
        "Not with --overlap-grad-reduce, --num-layers-per-virtual-pipeline-stage, FSDP, swapped attention or --tp-2d.",
    )
    return PartitionSettings({f"{_NAME}-layers": share}, flag_file(model, "MindSpeed", flags), notes)


def _check(model: StagedModel) -> None:
    """Raise `BadInput` for what MindSpeed refuses with DualPipeV, or cuts into other stages."""
    one_chain(_NAME, model)
    if model.placement.stage_device != v_shape(model.devices).stage_device or model.devices == 1:
        raise BadInput(f"{_NAME}: not supported: a {model.placement.name} placement; it has two stages a device in a V")
    microbatches_a_device(_NAME, model, 2)
    known_modes(_NAME, model, *FULL)
    mtp_on_last_stage(_NAME, model, "it puts them beside the head")
    counts = [one.layers for one in model.counts]
    if len({*counts}) > 1:
        raise BadInput(f"{_NAME}: not supported: stages of {', '.join(map(str, counts))} layers; it has equal ones")
    if model.step is not None and model.step.parallel.context > 1:
        raise BadInput(f"{_NAME}: not supported: context parallel {model.step.parallel.context}; it has none")


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage from the number of layers of every stage, such as `4`.

    Two stages are on a device. `BadInput` for several numbers, or if they do not add up to `layers`.
    """
    (share,) = numbers(_NAME, text) if "," not in text else (0,)
    if share < 1:
        raise BadInput(f"{_NAME}: found {text!r}; allowed: one number of layers, that of every stage")
    counts = [share] * (2 * devices)
    check_total(_NAME, counts, layers)
    return between_embedding_and_head(counts)


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="MindSpeed's DualPipeV: --schedules-method dualpipev, equal stages in a V",
        main=f"{_NAME}-layers",
        suffix=".mindspeed_dualpipev.args",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("v-shape",),
            RecomputeRule.ALL,
            (_ORDER,),
            MtpPlace.LAST_STAGE,
            equal_stages=True,
            microbatches_a_device=2,
            least_devices=2,
            split_backwards=True,
            context_parallel=False,
        ),
    )
)
