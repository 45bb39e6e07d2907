"""Files of settings: command-line flags, one a line, and headers that say where a file comes from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from pipesched.version import VERSION
from runtime.partitions.staged_model import StagedModel


def header(model: StagedModel, runtime: str) -> str:
    """The first line of a file of settings, a comment."""
    where = f"{len(model.stages)} stages on {model.devices} devices"
    return f"# Partition of {model.name!a} for {runtime}, by pipesched {VERSION}: {where}"


def flag_file(model: StagedModel, runtime: str, flags: Mapping[str, object]) -> str:
    """A file of flags, quoted for a shell: `--name value` a line."""
    lines = [f"--{name} {shlex.quote(str(value))}" for name, value in flags.items()]
    return "\n".join([header(model, runtime), *lines]) + "\n"
