"""Writer of the compute-only CSV of PyTorch's pipeline runtime, which torchtitan reads too, and of its side file."""

from __future__ import annotations

from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import Files, Settings
from runtime.exporters.torch_csv_cells import cell, last_stage_labels, notes, refuse, side_file
from runtime.lowering.deadlock import Semantics, proved
from runtime.lowering.programs import computes_of
from runtime.lowering.torch_model import torch_lowered

NAME = "torch-csv"
CSV, _META = ".csv", ".meta.json"


def write(timeline: Timeline, _: Settings) -> Files:
    """Return the text of the CSV and of its side file, by suffix (`.csv`, `.meta.json`); no file is written.

    `BadInput` if the transfers that PyTorch adds would deadlock, `Deadlock` if the order itself does. A placement with
    several chains, which `refused` refuses, must not be given.
    """
    label = last_stage_labels(timeline)
    rows = [[cell(one, label) for one in computes_of(timeline, d)] for d in range(timeline.problem.devices)]
    csv = "".join(",".join(row) + "\n" for row in rows)
    return {CSV: csv, _META: side_file(timeline, NAME, "compute_only", label, proof(timeline), notes(timeline))}


def refused(timeline: Timeline) -> None:
    """Raise `BadInput` for a placement that PyTorch's runtime cannot run."""
    refuse(NAME, timeline.problem.placement)


def proof(timeline: Timeline) -> str:
    """Return a clause (`free of deadlock: ...`) saying that the sends and receives that PyTorch adds end.

    `BadInput` with the cycle of waits if they do not, `Deadlock` if the order cannot run even without them.
    """
    return proved(NAME, torch_lowered(timeline), (Semantics.RENDEZVOUS, Semantics.POSTED))
