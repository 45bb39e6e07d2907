"""Files of settings: command-line flags, one a line, and headers that say where a file comes from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from pipesched.version import VERSION
from runtime.partitions.staged_model import StagedModel


def header(model: StagedModel, runtime: str) -> str:
    """The first lines of a file of settings, comments: what it is for, and what the plan takes with it."""
    where = f"{len(model.stages)} stages on {model.devices} devices, {model.microbatches} micro-batches"
    first = f"Partition of {model.name!a} for {runtime}, by pipesched {VERSION}: {where}"
    return "\n".join(f"# {line}" for line in (first, *model.figures))


def flag_file(model: StagedModel, runtime: str, flags: Mapping[str, object]) -> str:
    """A file of flags, quoted for a shell: `--name value` a line, several values apart."""
    batch = f"# {model.microbatches} micro-batches: --global-batch-size is {model.microbatches} times"
    batch += " --micro-batch-size times the data-parallel size"
    lines = [f"--{name} {_values(value)}" for name, value in flags.items()]
    return "\n".join([header(model, runtime), batch, *lines]) + "\n"


def _values(value: object) -> str:
    return shlex.join(value) if isinstance(value, list) else shlex.quote(str(value))
