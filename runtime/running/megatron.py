"""Installation of schedule files in Megatron-Core, as modules written by `export --format megatron` do it."""

from __future__ import annotations

from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.schedule_file import read_schedule
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.megatron import program_document


def install(*schedules: str | Path) -> None:
    """Make Megatron-Core run its training iterations in the order of these schedule files.

    There may be one file for each number of micro-batches. `BadInput` for a schedule that Megatron cannot run, and
    where Megatron-Core is not installed; `ValueError` if their stages are on different ranks.
    """
    documents = []
    for path in schedules:
        timeline = read_schedule(path).timeline
        EXPORTERS["megatron"].check(timeline)
        documents.append(program_document(timeline))
    try:
        from runtime.megatron.install import install as install_documents
    except ImportError as error:
        raise BadInput(f"pipesched.megatron: found no Megatron-Core ({error}); allowed: 0.16 or later") from None
    install_documents(*documents)
