"""The registry of trace formats, each of which reads the files of one program's run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.registry import Registry
from runtime.traces.memory_snapshot import is_snapshot
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace


@dataclass(frozen=True)
class Hints:
    """Data that files may lack: numbers of pipeline `devices`, and of `microbatches` of a step; None if not given.

    `snapshots` are those of torch's allocator among the files, one for each trace, or none; `read_traces` sets them.
    """

    devices: int | None = None
    microbatches: int | None = None
    snapshots: tuple[Path, ...] = ()


@dataclass(frozen=True)
class TraceFormat:
    """A format of traces: `recognises` is True for a file in it, `read` returns the trace in the files of one run.

    `read` raises `BadInput` for broken files. `takes_snapshots`: memory snapshots of torch's allocator may be given
    too.
    """

    name: str
    description: str
    recognises: Callable[[Path], bool]
    read: Callable[[Sequence[Path], Hints], PipelineTrace | BlockTrace]
    takes_snapshots: bool = False


TRACES: Registry[TraceFormat] = Registry("runtime.traces", "trace format")


def read_traces(names: Sequence[str | Path], hints: Hints | None = None) -> PipelineTrace | BlockTrace:
    """Return the trace in the files of one run; a folder stands for the traces and snapshots in it.

    Snapshots of torch's allocator among the files replace those of `hints`. `BadInput` if a file is missing, broken or
    of no known format, if there are several formats, or snapshots with a format that takes none.
    """
    paths = [file for name in names for file in _files(Path(name))]
    snapshots = tuple(path for path in paths if is_snapshot(path))
    found: dict[str, list[Path]] = {}
    for path in (path for path in paths if not is_snapshot(path)):
        form = form_of(path)
        if form is None:
            known = "; ".join(f"{one.name} ({one.description})" for one in TRACES)
            raise BadInput(f"{path}: found no trace of a known format; allowed: {known}")
        found.setdefault(form.name, []).append(path)
    if len(found) != 1:
        formats = ", ".join(found) or "none"
        raise BadInput(
            f"{', '.join(map(str, names))}: found traces of {formats}; allowed: those of one run, one format"
        )
    ((name, own),) = found.items()
    if snapshots and not TRACES[name].takes_snapshots:
        raise BadInput(
            f"{snapshots[0]}: found a memory snapshot beside {name}; allowed: beside traces of torch's profiler"
        )
    try:
        return TRACES[name].read(own, replace(hints or Hints(), snapshots=snapshots))
    except BadInput as error:
        raise BadInput(*(f"{', '.join(map(str, names))}: {mistake}" for mistake in error.mistakes)) from None


def form_of(path: Path) -> TraceFormat | None:
    """Return the format of a file; None if no format recognises it. Raises `BadInput` if there is no such file."""
    if not path.is_file():
        raise BadInput(f"{path}: cannot be read: there is no such file")
    return next((one for one in TRACES if one.recognises(path)), None)


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if is_snapshot(file) or form_of(file)) if path.is_dir() else [path]


def head_of(path: Path) -> str:
    """Return the first 4096 bytes of a file, as they are on disk, as UTF-8 text in which wrong bytes are replaced."""
    with path.open("rb") as file:
        return file.read(4096).decode("utf-8", "replace")
