"""Writes a schedule as the CSV file that PyTorch's pipeline runtime loads: one row a device, one cell a pass.

The file is for `_PipelineScheduleRuntime._load_csv(path, format="compute_only")` of torch 2.13; torch adds the sends
and receives itself. The side file says what a CSV cannot: which rank builds which stages, how the micro-batches were
renumbered, and what to mind when running it.
"""

from __future__ import annotations

from pipesched.timeline import Timeline
from runtime.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.communication import computes_of
from runtime.deadlock import Semantics, proved
from runtime.torch_csv_cells import cell, last_stage_labels, notes, refuse, side_file
from runtime.torch_csv_lowering import torch_lowered

NAME = "torch-csv"
_CSV, _META = ".csv", ".meta.json"


def write(timeline: Timeline, _: Settings) -> Files:
    """The CSV and its side file; `BadInput` for what torch's runtime cannot run."""
    refuse(NAME, timeline.problem.placement)
    label = last_stage_labels(timeline)
    rows = [[cell(one, label) for one in computes_of(timeline, d)] for d in range(timeline.problem.devices)]
    csv = "".join(",".join(row) + "\n" for row in rows)
    return {_CSV: csv, _META: side_file(timeline, NAME, "compute_only", label, proof(timeline), notes(timeline))}


def proof(timeline: Timeline) -> str:
    """That the sends and receives torch adds run to their end."""
    return proved(NAME, torch_lowered(timeline), (Semantics.RENDEZVOUS, Semantics.POSTED))


EXPORTERS.register(
    Exporter(
        name=NAME,
        description="PyTorch's _PipelineScheduleRuntime: order of passes on every rank (compute_only)",
        suffix=_CSV,
        write=write,
        warnings=notes,
        proof=proof,
    )
)
