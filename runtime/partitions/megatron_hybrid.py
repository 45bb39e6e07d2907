"""Settings for a plain transformer as Megatron-LM's HybridModel: `--hybrid-layer-pattern`, two letters a layer.

Main of 2026-08 deprecates GPTModel for it. A layer is its attention (`*`, latent `+`) followed by its MLP (`-`) or
experts (`E`); bars separate stages, `/` precedes multi-token prediction, always on the last stage. Recomputation counts
letters, so that a whole layer is two of them (checkpointed_forward in megatron/core/recompute.py); multi-token
prediction then asserts that it is one. In a V, which the module of `export --format megatron` places, the pattern lists
the stages in stage order as ever.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.layers.roles import Role
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.megatron_flags import ORDERS, group_flags, order_notes
from runtime.partitions.megatron_hybrid_pattern import is_hybrid, names_of, no_hybrid
from runtime.partitions.megatron_own_order import ORDER_NOTE, OWN_ORDER, check_stages
from runtime.partitions.mixer_limits import GATED_DELTA, MAMBA2, MixerLimits
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import all_or_none, known_modes, loop, mtp_on_last_stage
from runtime.partitions.staged_model import Run, StageCounts, StagedModel

_NAME, _ORDER_NAME = "megatron-hybrid", "megatron-hybrid-order"
_OWN = "a hybrid model of its own: its pattern is among the settings of megatron"
_TAKES_HYBRID = "megatron takes hybrid models"
# Letters of mixers, by what `pipesched.layers.derived` calls them.
_MIXERS = {MAMBA2: "M", GATED_DELTA: "G"}
_BUILT = MixerLimits(tuple(_MIXERS), stated=True)
_SPEC = "megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec"


def _write(model: StagedModel) -> PartitionSettings:
    pattern, flags, notes = _settings(_NAME, model)
    loop(_NAME, model)
    flags |= group_flags(_NAME, model)
    return PartitionSettings(
        {"megatron-transformer-pattern": pattern},
        flag_file(model, "Megatron-LM", flags),
        order_notes(model, _ORDER_NAME) + notes,
    )


def _write_with_order(model: StagedModel) -> PartitionSettings:
    pattern, flags, notes = _settings(_ORDER_NAME, model)
    check_stages(_ORDER_NAME, model)
    # Evaluation of a loop stays Megatron's own, in groups that it takes.
    flags |= group_flags(_ORDER_NAME, replace(model, schedule=None))
    return PartitionSettings(
        {"megatron-hybrid-order-pattern": pattern}, flag_file(model, "Megatron-LM", flags), (ORDER_NOTE, *notes)
    )


def _settings(name: str, model: StagedModel) -> tuple[str, dict[str, object], tuple[str, ...]]:
    """Return a plan's pattern, its flags without those of micro-batch groups, and notes.

    `BadInput`, which begins with the format's `name`, if it has none.
    """
    if is_hybrid(names_of(model)):
        raise BadInput(f"{name}: not supported: {_OWN}")
    mtp_on_last_stage(name, model, "a pattern has them behind the last stage")
    known_modes(name, model, *FULL)
    pattern = _pattern(model, _mixer_letter(name, model))
    flags: dict[str, object] = {"pipeline-model-parallel-size": model.devices, "hybrid-layer-pattern": pattern}
    if all_or_none(name, model, FULL, "--recompute-method uniform"):
        if model.mtp:
            raise BadInput(f"{name}: not supported: recomputation beside multi-token prediction layers")
        flags |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 2}
    notes: tuple[str, ...] = (f"For a model built by pretrain_hybrid.py with --spec {_SPEC} (Megatron-LM main).",)
    if model.step is None:
        notes += ("Layers whose names begin with moe have experts (E), all others an MLP; write + for * with MLA.",)
    return pattern, flags, notes


def _pattern(model: StagedModel, mixer: str) -> str:
    attention = "+" if model.step is not None and model.step.latent_attention else "*"
    stages = [[run for run in stage.runs if run.role is Role.TRANSFORMER] for stage in model.stages]
    main = "|".join("".join(_letters(run, attention, mixer) for run in stage) for stage in stages)
    last = attention + main.replace("|", "")[-1:]
    return main + f"/{last}" * model.mtp


def _letters(run: Run, attention: str, mixer: str) -> str:
    first = mixer if run.name.lower().endswith("-linear") else attention
    return (first + ("E" if run.name.lower().startswith("moe") else "-")) * run.layers


def _mixer_letter(name: str, model: StagedModel) -> str:
    """Return the letter of the mixer that layers have in place of attention, empty without such layers.

    `BadInput` where Megatron has none. `name` is the format's, with which messages begin.
    """
    if not any(one.lower().endswith("-linear") for one in names_of(model)):
        return ""
    mixer = None if model.step is None else model.step.mixer
    if mixer not in _MIXERS:
        allowed = f"{', '.join(_MIXERS)}, from the section model"
        raise BadInput(f"{name}: not supported: layers with {mixer or 'a mixer of no known kind'}; allowed: {allowed}")
    return _MIXERS[mixer]


def _read(name: str, text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage of a pattern of pairs of letters, for so many pipeline `devices` and `layers`
    transformer layers; `BadInput` with a line for each rule that it breaks.

    `name` is the setting, for messages.
    """
    main, *mtp = text.strip().strip("'\"").split("/")
    segments, mistakes = main.split("|"), list[str]()
    strange = next((one for one in segments if one[::2].strip("*+DMG") or one[1::2].strip("-E") or len(one) % 2), None)
    if strange is not None:
        raise BadInput(
            f"{name}: found {strange!r}; allowed: an attention (*, + or D), M or G, and - or E, of every layer"
        )
    if len(segments) % devices:
        mistakes.append(f"{name}: found {len(segments)} segments; allowed: a multiple of the {devices} devices")
    counts = [len(one) // 2 for one in segments]
    if sum(counts) != layers:
        mistakes.append(f"{name}: found {sum(counts)} layers in the pattern; allowed: the model's {layers}")
    if len({*mtp}) > 1:
        mistakes.append(f"{name}: found {len({*mtp})} patterns of multi-token prediction; allowed: one")
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
        read=partial(_read, _NAME),
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.ALL,
            ORDERS,
            MtpPlace.LAST_STAGE,
            recomputes_mtp=False,
            groups=True,
            mixers=_BUILT,
            check=partial(no_hybrid, _TAKES_HYBRID),
        ),
    )
)
PARTITION_FORMATS.register(
    PartitionFormat(
        name=_ORDER_NAME,
        description="HybridModel in the plan's own order: the pattern, beside the module of `export --format megatron`",
        main="megatron-hybrid-order-pattern",
        suffix=".megatron_hybrid_order.args",
        write=_write_with_order,
        read=partial(_read, _ORDER_NAME),
        limits=replace(
            OWN_ORDER,
            rule=RecomputeRule.ALL,
            mtp=MtpPlace.LAST_STAGE,
            recomputes_mtp=False,
            mixers=_BUILT,
            check=partial(no_hybrid, _TAKES_HYBRID),
        ),
    )
)
