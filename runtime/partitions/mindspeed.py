"""Settings for MindSpeed: `--num-layer-list`, or `--pipeline-num-transformer-layers` with several chunks a device."""

from __future__ import annotations

import re

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import RecomputeRule
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.list_texts import between_embedding_and_head, check_length, check_total, numbers, rows
from runtime.partitions.megatron_flags import ORDERS, group_flags, module_notes, order_notes, recompute_flags
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import loop, mtp_on_last_stage
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "mindspeed"


def _write(model: StagedModel) -> PartitionSettings:
    chunks = loop(_NAME, model)
    mtp_on_last_stage(_NAME, model, "it puts them beside the head")
    counts = [one.layers for one in model.counts]
    flags: dict[str, object] = {"pipeline-model-parallel-size": model.devices, "num-layers": model.layers}
    if chunks == 1:
        main = ",".join(map(str, counts))
        flags["num-layer-list"] = main
    else:
        share, remainder = divmod(model.layers, len(counts))
        if remainder:
            raise BadInput(
                f"{_NAME}: not supported: {model.layers} layers in {chunks} chunks on {model.devices} devices; it "
                f"wants a multiple of {len(counts)} (it also takes --pipeline-model-parallel-layout: megatron)"
            )
        main = str([counts[device :: model.devices] for device in range(model.devices)]).replace(" ", "")
        flags["num-layers-per-virtual-pipeline-stage"] = share
        flags["pipeline-num-transformer-layers"] = main
    if model.mtp:
        flags["mtp-num-layers"] = model.mtp
    flags |= group_flags(_NAME, model) | recompute_flags(_NAME, model)
    notes = order_notes(model) + module_notes(model)
    if chunks == 1:
        notes += (
            "--num-layer-list is read by MindSpeed-LLM; MindSpeed alone takes --pipeline-model-parallel-layout "
            "(settings of megatron).",
        )
    return PartitionSettings({"mindspeed-layer-list": main}, flag_file(model, "MindSpeed", flags), notes)


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the stages of either list of transformer layers: `15,15,16`, or rows of devices with columns of chunks.

    The first stage has the embedding in addition, the last one the head. Rows may have a factor, as in
    `[[0,1],[1,1]*2,[3,0]]`. `BadInput` for anything else, or if the numbers do not fit `devices` and `layers`.
    """
    if text.strip().startswith("[["):
        table = rows(_NAME, _unrolled(text))
        check_length(_NAME, len(table), devices)
        counts = [row[chunk] for chunk in range(len(table[0])) for row in table]
    else:
        counts = numbers(_NAME, text)
        check_length(_NAME, len(counts), devices)
    check_total(_NAME, counts, layers)
    return between_embedding_and_head(counts)


def _unrolled(text: str) -> str:
    """Return the text with every row that has a factor, `[1,1]*2`, written that many times.

    `BadInput` for a factor that is not from 1 to 10000.
    """

    def repeated(match: re.Match[str]) -> str:
        number = int(match[2])
        if not 1 <= number <= 10_000:
            raise BadInput(f"{_NAME}: found a factor of {number}; allowed: 1 to 10000")
        return ",".join([match[1]] * number)

    return re.sub(r"(\[[^\[\]]*\])\s*\*\s*(\d+)", repeated, text)


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="MindSpeed: --num-layer-list, --pipeline-num-transformer-layers",
        main="mindspeed-layer-list",
        suffix=".mindspeed.args",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.SAME,
            ORDERS,
            MtpPlace.LAST_STAGE,
            groups=True,
            layers_divide=True,
        ),
    )
)
