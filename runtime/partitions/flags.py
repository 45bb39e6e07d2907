"""Files of command-line flags, one a line, and comment headers with a file's origin."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from pipesched.problem.formatting import counted
from pipesched.version import VERSION
from runtime.partitions.job_flags import leave_out_lines
from runtime.partitions.staged_model import StagedModel


def header(model: StagedModel, runtime: str) -> str:
    """Return the comment lines at the head of a file of settings for `runtime`: its purpose, and the plan's figures."""
    stages, devices = counted(len(model.stages), "stage"), counted(model.devices, "device")
    where = f"{stages} on {devices}, {counted(model.microbatches, 'micro-batch')}"
    first = f"Partition of {model.name!a} for {runtime}, by pipesched {VERSION}: {where}"
    return "\n".join(f"# {line}" for line in (first, *_training(model), *model.figures))


def _training(model: StagedModel) -> Iterator[str]:
    """Yield one line, without its `# `, with the training sizes of the plan's file, if it has them."""
    step = model.step
    if step is None:
        return
    shared = step.parallel
    expert = f", expert {shared.expert} of these" if step.experts else ""
    yield (
        f"for tensor {shared.tensor} * context {shared.context} * pipeline {model.devices} * data {shared.data} = "
        f"{counted(shared.devices * model.devices, 'device')}{expert}; micro-batches of "
        f"{step.microbatch_size} x {step.sequence} tokens, {step.sequences(model.microbatches)} sequences a step"
    )


def flag_file(model: StagedModel, runtime: str, flags: Mapping[str, object]) -> str:
    """Return a file of flags for `runtime`, with those of the plan's training settings before the given `flags`.

    A line is `--name value`, quoted for a shell, with several values separated by spaces; `--name` alone for True.
    """
    comment = f"# {model.microbatches} micro-batches: --global-batch-size is {model.microbatches} times"
    comment += " --micro-batch-size times the data-parallel size"
    flags = step_flags(model) | dict(flags)
    batch = [comment] if model.step is None else []
    lines = [f"--{name}" if value is True else f"--{name} {_values(value)}" for name, value in flags.items()]
    return "\n".join([header(model, runtime), *batch, *leave_out_lines(model, flags), *lines]) + "\n"


def step_flags(model: StagedModel) -> dict[str, object]:
    """Return the values of Megatron's flags for the training settings of the plan's file, by name without `--`.

    They are the sizes of parallelism with what these require, batch sizes, and sequence length; the longest position
    where the sequence exceeds the model's. A flag without a value has True. Empty if the file has no such settings.
    """
    step = model.step
    if step is None:
        return {}
    shared = step.parallel
    flags: dict[str, object] = {"tensor-model-parallel-size": shared.tensor}
    if shared.tensor > 1:
        flags["sequence-parallel"] = True
    flags["context-parallel-size"] = shared.context
    if step.experts:
        # Whole experts: Megatron's default cuts each by the tensor parallel size.
        flags |= {"expert-model-parallel-size": shared.expert, "expert-tensor-parallel-size": 1}
    if shared.sharded_optimizer:
        flags["use-distributed-optimizer"] = True
    batch = {"micro-batch-size": step.microbatch_size, "global-batch-size": step.sequences(model.microbatches)}
    flags["seq-length"] = step.sequence
    if step.longest is not None and step.sequence > step.longest:
        flags["max-position-embeddings"] = step.sequence
    return flags | batch


def _values(value: object) -> str:
    return shlex.join(value) if isinstance(value, list) else shlex.quote(str(value))
