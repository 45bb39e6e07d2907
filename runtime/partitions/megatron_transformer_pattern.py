"""Settings for a plain transformer as Megatron-LM's HybridModel: `--hybrid-layer-pattern`, two letters a layer.

Main of 2026-08 deprecates GPTModel for it. A layer is its attention (`*`, latent `+`) followed by its MLP (`-`) or
experts (`E`); bars separate stages, `/` precedes multi-token prediction, always on the last stage. Recomputation counts
letters, so that a whole layer is two of them (checkpointed_forward in megatron/core/recompute.py); multi-token
prediction then asserts that it is one.
"""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.layers.roles import Role
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.megatron_flags import ORDERS, group_flags, order_notes
from runtime.partitions.megatron_hybrid import is_hybrid, names_of, no_hybrid
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import all_or_none, known_modes, loop, mtp_on_last_stage
from runtime.partitions.staged_model import Run, StageCounts, StagedModel

_NAME = "megatron-hybrid"
_OWN = "a hybrid model of its own: its pattern is among the settings of megatron"
_SPEC = "megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec"


def _write(model: StagedModel) -> PartitionSettings:
    if is_hybrid(names_of(model)):
        raise BadInput(f"{_NAME}: not supported: {_OWN}")
    loop(_NAME, model)
    mtp_on_last_stage(_NAME, model, "a pattern has them behind the last stage")
    known_modes(_NAME, model, *FULL)
    pattern = _pattern(model)
    flags: dict[str, object] = {"pipeline-model-parallel-size": model.devices, "hybrid-layer-pattern": pattern}
    flags |= group_flags(_NAME, model)
    if all_or_none(_NAME, model, FULL, "--recompute-method uniform"):
        if model.mtp:
            raise BadInput(f"{_NAME}: not supported: recomputation beside multi-token prediction layers")
        flags |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 2}
    notes: tuple[str, ...] = (f"For a model built by pretrain_hybrid.py with --spec {_SPEC} (Megatron-LM main).",)
    if model.step is None:
        notes += ("Layers whose names begin with moe have experts (E), all others an MLP; write + for * with MLA.",)
    return PartitionSettings(
        {"megatron-transformer-pattern": pattern}, flag_file(model, "Megatron-LM", flags), order_notes(model) + notes
    )


def _pattern(model: StagedModel) -> str:
    attention = "+" if model.step is not None and model.step.latent_attention else "*"
    stages = [[run for run in stage.runs if run.role is Role.TRANSFORMER] for stage in model.stages]
    main = "|".join("".join(_letters(run, attention) for run in stage) for stage in stages)
    last = main.replace("|", "")[-2:]
    return main + f"/{last}" * model.mtp


def _letters(run: Run, attention: str) -> str:
    return (attention + ("E" if run.name.lower().startswith("moe") else "-")) * run.layers


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage of a pattern of pairs of letters; `BadInput` with a line for each rule that it
    breaks."""
    main, *mtp = text.strip().strip("'\"").split("/")
    segments, mistakes = main.split("|"), list[str]()
    strange = next((one for one in segments if one[::2].strip("*+D") or one[1::2].strip("-E") or len(one) % 2), None)
    if strange is not None:
        raise BadInput(f"{_NAME}: found {strange!r}; allowed: an attention (*, + or D) and - or E, of every layer")
    if len(segments) % devices:
        mistakes.append(f"{_NAME}: found {len(segments)} segments; allowed: a multiple of the {devices} devices")
    counts = [len(one) // 2 for one in segments]
    if sum(counts) != layers:
        mistakes.append(f"{_NAME}: found {sum(counts)} layers in the pattern; allowed: the model's {layers}")
    if len({*mtp}) > 1:
        mistakes.append(f"{_NAME}: found {len({*mtp})} patterns of multi-token prediction; allowed: one")
    if mistakes:
        raise BadInput(*mistakes)
    ends = len(counts) - 1
    return tuple(
        StageCounts(int(at == 0), number, len(mtp) if at == ends else 0, int(at == ends))
        for at, number in enumerate(counts)
    )


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="Megatron-LM's HybridModel for a plain transformer: --hybrid-layer-pattern with | between stages",
        main="megatron-transformer-pattern",
        suffix=".megatron_hybrid.args",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.ALL,
            ORDERS,
            MtpPlace.LAST_STAGE,
            recomputes_mtp=False,
            groups=True,
            check=lambda names: no_hybrid("megatron takes hybrid models", names),
        ),
    )
)
