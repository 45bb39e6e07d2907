"""Exporter for torchtitan: a Python module with its settings, as flags and as a function, and their CSV.

torchtitan loads the CSV as PyTorch's compute-only format, but builds the stages from the name of a schedule that torch
registers: two stages a device in a V for `ZBVZeroBubble`, in a loop for every other name. A name that builds other
stages than the CSV uses does not fail, it hangs: therefore the checks here. Release 0.3.0 and the main branch since
2026-08-20 name the number of micro-batches differently; neither reads TOML. The modules of each stage are a list of
lists, which the command line cannot express: therefore the function. No flag removes the chunks of the loss either, so
if the last stage's backwards are split there are no flags (`runtime/configuration/torchtitan.py` says why).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from pipesched.errors import BadInput
from pipesched.problem.passes import B
from pipesched.problem.placement import interleaved, v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.schedule.timeline import Timeline
from pipesched.version import VERSION
from runtime.configuration.torchtitan import PIPELINED
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Option, Settings
from runtime.exporters.torch_compute_only import CSV, proof, write
from runtime.exporters.torch_csv_cells import notes, refuse

_NAME, _SUFFIX = "torchtitan", ".torchtitan.py"

_MODULE = '''# schedule {schedule!a} of problem {problem!a}, by pipesched {version}
"""Settings of torchtitan for a pipeline schedule.

Call `apply` on the trainer's configuration, in the function that `--config` names:

    def my_config():
        return apply(llama3_8b())

or give the flags. The path of the CSV is seen from where the trainer is started. {modules_note}
"""

{flags}
MICROBATCHES, MICROBATCH_SIZE = {microbatches}, {size}
MODULES_OF_STAGE = {modules}
SPLIT_STAGES = {split}  # those whose backwards are split


def apply(config):
    """The configuration with this schedule, of whichever version."""
    parallelism = config.parallelism
    parallelism.pipeline_parallel_degree = {degree}
    parallelism.pipeline_parallel_schedule = {name!r}
    parallelism.pipeline_parallel_schedule_csv = {csv!a}
    if MODULES_OF_STAGE is not None:
        parallelism.module_fqns_per_model_part = MODULES_OF_STAGE
    return pipelined(config, MICROBATCHES, MICROBATCH_SIZE, SPLIT_STAGES, last={last})


{pipelined}'''


_FLAGS = """FLAGS = {{
    "0.3.0": (
{release}
    ),
    # Since 2026-08-20. There the size of a micro-batch is training.num_tokens_per_microbatch_per_dp_rank.
    "main": (
{main}
    ),
}}"""

_NO_FLAGS = """# None: the last stage's backwards are split, and with torchtitan's chunked loss, which no flag replaces,
# the gradient of the final norm would be wrong without a word. `apply` replaces it.
FLAGS = {}"""


def _write(timeline: Timeline, settings: Settings) -> Files:
    problem = timeline.problem
    name, stages = _schedule_name(timeline), problem.placement.stages
    size, csv = _whole("microbatch-size", settings["microbatch-size"]), settings["stem"] + CSV
    modules = _modules(settings["layers"], stages, needed=stages // problem.devices > 2)
    split = _split_stages(timeline)
    text = _MODULE.format(
        schedule=timeline.schedule.name,
        problem=problem.name,
        version=VERSION,
        modules_note=f"Flags alone leave it to torchtitan which layers each of the {stages} stages has.",
        flags=_flags(problem, name, csv, size, split),
        microbatches=problem.microbatches,
        size=size,
        modules="None" if modules is None else "[\n" + "".join(f"    {part!r},\n" for part in modules) + "]",
        split=split,
        degree=problem.devices,
        name=name,
        csv=csv,
        last=stages - 1,
        pipelined=PIPELINED,
    )
    return {_SUFFIX: text} | write(timeline, settings)


def _refuse(timeline: Timeline) -> None:
    refuse(_NAME, timeline.problem.placement)
    _schedule_name(timeline)


def _split_stages(timeline: Timeline) -> list[StageId]:
    return sorted({p.stage for p in timeline.schedule.passes() if p.kind is B})


def _flags(problem: Problem, name: str, csv: str, size: int, split: list[StageId]) -> str:
    """Return the source text that defines `FLAGS` in the exported module.

    It has the command line for each version of torchtitan. `name` is the name of a schedule registered by PyTorch,
    `csv` the path of the schedule, `size` the sequences of a micro-batch, `split` the stages with separate B and W. If
    `split` contains the last stage, which flags cannot express, `FLAGS` is defined empty.
    """
    if problem.placement.stages - 1 in split:
        return _NO_FLAGS
    shared: dict[str, object] = {
        "parallelism.pipeline_parallel_degree": problem.devices,
        "parallelism.pipeline_parallel_schedule": name,
        "parallelism.pipeline_parallel_schedule_csv": csv,
    }
    release = shared | {
        "parallelism.pipeline_parallel_microbatch_size": size,
        "training.local_batch_size": problem.microbatches * size,
    }
    bare = ["--training.disable_cuda_graphs", *(["activation-checkpoint:none"] if split else [])]
    main = shared | {"parallelism.num_pp_microbatches": problem.microbatches}
    return _FLAGS.format(release=_words(release, bare), main=_words(main, bare))


def _words(values: dict[str, object], bare: list[str]) -> str:
    """Return flags as the lines of one Python string literal.

    First come those with a value, one a line, then `bare`, those without.
    """
    lines = [f"--{key} {shlex.quote(str(value))} " for key, value in values.items()] + [f"{word} " for word in bare]
    return "\n".join(f"        {line!a}" for line in lines)


def _schedule_name(timeline: Timeline) -> str:
    """Return the name of a schedule registered by PyTorch whose stages are placed as these.

    `BadInput` if there is none.
    """
    placement = timeline.problem.placement
    chunks, remainder = divmod(placement.stages, placement.devices)
    if not remainder and placement.stage_device == interleaved(placement.devices, chunks).stage_device:
        return "1F1B" if chunks == 1 else "Interleaved1F1B"
    if placement.stage_device == v_shape(placement.devices).stage_device:
        return "ZBVZeroBubble"
    where = ", ".join(map(str, placement.stage_device))
    raise BadInput(
        f"{_NAME}: found stages on devices {where}; torchtitan builds a loop (stage s on device s mod "
        f"{placement.devices}) or a V of two stages a device; torch-csv can express it in a trainer of your own"
    )


def _modules(layers: str, stages: int, needed: bool) -> list[list[str]] | None:
    """Return the names of each stage's modules in torchtitan's decoders, from the text of the option `layers`.

    None where the option is empty and torchtitan may divide them itself (not `needed`). Raises `BadInput` if it is
    empty and `needed`, if its numbers are wrong or not one or one for each stage, or if they leave a stage without a
    module.
    """
    if not layers:
        if not needed:
            return None
        raise BadInput(
            f"{_NAME}: torchtitan builds two stages a device at most unless the modules of each are given; give the"
            " number of transformer layers, or that of each stage: --option layers=N or layers=N,N,..."
        )
    counts = [_whole("layers", word, least=0) for word in layers.split(",")]
    if len(counts) == 1:
        counts = _shared_out(counts[0], stages)
    if len(counts) != stages:
        raise BadInput(f"{_NAME}: found layers={layers}; allowed: one number, or one for each of {stages} stages")
    made, at = [], 0
    for count in counts:
        made.append([f"layers.{number}" for number in range(at, at + count)])
        at += count
    made[0].insert(0, "tok_embeddings")
    made[-1] += ["norm", "lm_head"]
    empty = next((stage for stage, part in enumerate(made) if not part), None)
    if empty is not None:
        raise BadInput(f"{_NAME}: found layers={layers}; allowed: a layer at least for stage {empty}")
    return made


def _shared_out(layers: int, stages: int) -> list[int]:
    """Return the number of transformer layers of each stage as torchtitan divides them; `layers` is that of the model.

    Embedding and head count as a layer each, and the first stages have one more if stages cannot be equal. `BadInput`
    if there are too few layers for so many stages.
    """
    share, more = divmod(layers + 2, stages)
    if share < 1 or layers < 1:
        raise BadInput(f"{_NAME}: found layers={layers}; allowed for {stages} stages: at least {max(1, stages - 2)}")
    counts = [share + (stage < more) for stage in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    return counts


def _whole(name: str, text: str, least: int = 1) -> int:
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise BadInput(f"{_NAME}: found {name}={text}; allowed: a whole number from {least}")
    return int(text)


def _notes(timeline: Timeline) -> list[str]:
    return [
        "torchtitan divides the loss by the micro-batches and sums their gradients: leave its scale_grads=False.",
        "torchtitan loads the CSV without sends and receives, so they stand where torch puts them.",
        "torchtitan 0.3.0 and main need torch 2.14 or newer.",
        *_of_split_backwards(timeline),
        *notes(timeline),
    ]


def _of_split_backwards(timeline: Timeline) -> Iterator[str]:
    split = _split_stages(timeline)
    if split:
        yield (
            "Selective activation checkpointing fails where backwards are split; `apply` turns it off, which holds "
            "more memory. Full checkpointing works, and runs the forward again for B and once more for W."
        )
    if timeline.problem.placement.stages - 1 in split:
        yield (
            "The backwards of the last stage are split: with torchtitan's chunked loss the gradient of the final norm "
            "would be wrong, so `apply` takes the chunks off, and all logits of a micro-batch are held at once; `solve "
            "--for torchtitan` gives an order that keeps them."
        )


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="torchtitan 0.3.0 and main: a Python module with its settings, and the CSV they name",
        suffix=_SUFFIX,
        write=_write,
        refuse=_refuse,
        warnings=_notes,
        proof=proof,
        options=(
            Option("microbatch-size", "sequences in a micro-batch", "1"),
            Option("layers", "transformer layers of the model, or of each stage (4,4,4,3)", ""),
        ),
    )
)
