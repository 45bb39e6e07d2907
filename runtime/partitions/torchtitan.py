"""Settings for torchtitan: `parallelism.module_fqns_per_model_part`, the modules of each stage by name."""

from __future__ import annotations

import json

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.files.schema_errors import shown
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.problem.placement import v_shape
from runtime.configuration.torchtitan import PIPELINED
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import header
from runtime.partitions.mixer_limits import ANY_MODEL
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import all_or_none, every_stage_trains, known_modes, loop, no_mtp, one_chain
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "torchtitan"
# Of the orders of torch by whose names stages are placed, those with split backwards.
_SPLITS = ("ZBVZeroBubble",)

_CHECKPOINTING = "torchtitan.distributed.activation_checkpoint"

_MODULE = '''{header}
"""Call `apply` on the trainer's configuration, in the function that `--config` names.

`csv` is the path of the order, as `pipesched export SCHEDULE --format torchtitan` writes it (FILE.csv); without it
torchtitan runs its own order, {schedule}.
"""

import re

MODULES_OF_STAGE = [
{modules}
]
MICROBATCHES = {microbatches}


def apply(config, csv="", microbatch_size=None):
    """The configuration with this partition; the size of a micro-batch {size_comment}."""
    parallelism = config.parallelism
    parallelism.pipeline_parallel_degree = {degree}
    parallelism.pipeline_parallel_schedule = {schedule!r}
    parallelism.pipeline_parallel_schedule_csv = csv
    parallelism.module_fqns_per_model_part = MODULES_OF_STAGE
{sizes}{checkpointing}    split = split_stages(csv) if csv else {own_split}
    size, sequence = {own_size}
    return pipelined(config, MICROBATCHES, size, split, last=len(MODULES_OF_STAGE) - 1, sequence=sequence)


def split_stages(csv):
    """The stages whose backwards an order splits into I and W."""
    with open(csv) as file:
        return sorted({{int(stage) for stage in re.findall(r"(\\d+)I\\d", file.read())}})


{pipelined}'''


def _write(model: StagedModel) -> PartitionSettings:
    one_chain(_NAME, model)
    every_stage_trains(_NAME, model)
    no_mtp(_NAME, model, "its decoders have none")
    known_modes(_NAME, model, *FULL)
    recomputed = all_or_none(_NAME, model, FULL, "activation checkpointing")
    modules = _modules(model.counts)
    schedule = _schedule(model)
    listed = "\n".join(f"    {json.dumps(part)}," for part in modules)
    text = _MODULE.format(
        header=header(model, _NAME),
        schedule=schedule,
        modules=listed,
        size_comment="is the plan's unless given" if model.step else "stays as it is unless given",
        degree=model.devices,
        microbatches=model.microbatches,
        own_size=_own_size(model),
        sizes="".join(f"    {name} = {value}\n" for name, value in _sizes(model).items()),
        checkpointing=_checkpointing(model, recomputed),
        own_split=list(range(len(modules))) if schedule in _SPLITS else [],
        pipelined=PIPELINED,
    )
    notes = [f"torchtitan runs {schedule} unless it is given this plan's order as CSV (`export --format torchtitan`)."]
    if recomputed:
        notes.append("Every layer is recomputed: `apply` chooses full activation checkpointing.")
    elif model.decides_recomputation:
        notes.append("No layer is recomputed: `apply` switches activation checkpointing off.")
    return PartitionSettings({"torchtitan-module-fqns": modules}, text, tuple(notes))


def _sizes(model: StagedModel) -> dict[str, int]:
    """Return the tensor, context and expert parallel sizes of the plan's file, by torchtitan's names.

    Empty without them. Data parallelism needs no entry: replicas are the remaining devices.
    """
    step = model.step
    if step is None:
        return {}
    sizes = {name: getattr(step.parallel, name) for name in ("tensor", "context", "expert")}
    return {f"parallelism.{name}_parallel_degree": size for name, size in sizes.items()}


def _checkpointing(model: StagedModel, recomputed: bool) -> str:
    """Return source lines that set activation checkpointing, full if `recomputed`, else none.

    Empty where the plan recomputes nothing and did not decide on it.
    """
    if recomputed:
        return f"    from {_CHECKPOINTING} import FullAC\n\n    config.activation_checkpoint = FullAC.Config()\n"
    return "    config.activation_checkpoint = None\n" if model.decides_recomputation else ""


def _own_size(model: StagedModel) -> str:
    """Return source text of two expressions: the sequences of a micro-batch, and the tokens of a sequence.

    They read torchtitan's configuration where the model file does not give a step's sizes.
    """
    if model.step is None:
        return 'microbatch_size, microbatch_size and getattr(config.training, "max_context_length", None)'
    return f"microbatch_size or {model.step.microbatch_size}, {model.step.sequence}"


def _modules(counts: tuple[StageCounts, ...]) -> list[list[str]]:
    made, at = [], 0
    for one in counts:
        layers = [f"layers.{number}" for number in range(at, at + one.layers)]
        made.append(["tok_embeddings"] * one.embedding + layers + ["norm", "lm_head"] * one.head)
        at += one.layers
    return made


def _schedule(model: StagedModel) -> str:
    """Return the name of a schedule of PyTorch for which torchtitan places the stages as here.

    `BadInput` if there is none.
    """
    if model.placement.stage_device == v_shape(model.devices).stage_device:
        return "ZBVZeroBubble"
    return "1F1B" if loop(_NAME, model) == 1 else "Interleaved1F1B"


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage from lists of module names, in order; older versions call the head `output`.

    `BadInput` unless the lists have all modules of the model once and in order, on a multiple of `devices` stages.
    """
    parts = read_json(text, _NAME)
    if not isinstance(parts, list) or not all(isinstance(part, list) and part for part in parts):
        raise BadInput(f"{_NAME}: found {shown(text)}; allowed: a list of lists of module names, none of them empty")
    mistakes = []
    if len(parts) % devices:
        mistakes.append(f"{_NAME}: found {len(parts)} parts; allowed: a multiple of the {devices} devices")
    names = [name for part in parts for name in part]
    expected = ["tok_embeddings", *(f"layers.{number}" for number in range(layers)), "norm"]
    heads = (["lm_head"], ["output"])
    if names[:-1] != expected or names[-1:] not in heads:
        wrong = next((name for name, right in zip(names, expected, strict=False) if name != right), names[-1])
        mistakes.append(
            f"{_NAME}: found {shown(wrong)} out of place among {len(names)} modules; allowed: tok_embeddings, layers.0 "
            f"to layers.{layers - 1}, norm and lm_head, each once and in this order"
        )
    if mistakes:
        raise BadInput(*mistakes)
    return tuple(
        StageCounts(
            part.count("tok_embeddings"),
            sum(name.startswith("layers.") for name in part),
            0,
            sum([name] in heads for name in part),
        )
        for part in parts
    )


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="torchtitan: parallelism.module_fqns_per_model_part",
        main="torchtitan-module-fqns",
        suffix=".torchtitan_partition.py",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear", "interleaved", "v-shape"),
            RecomputeRule.ALL,
            mtp=MtpPlace.NOWHERE,
            whole_last=True,
            every_stage_trains=True,
            mixers=ANY_MODEL,
        ),
    )
)
