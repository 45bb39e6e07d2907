"""Exporter of the CSV file that PyTorch's pipeline runtime loads: a row for each device, a cell for each pass.

The file is for `_PipelineScheduleRuntime._load_csv(path, format="compute_only")` of torch 2.13 to 2.15; torch adds the
sends and receives itself. The side file has what a CSV cannot express: the stages of each rank, the renumbering of
micro-batches, and notes for running it.
"""

from __future__ import annotations

from runtime.exporters.catalogue import EXPORTERS, Exporter
from runtime.exporters.torch_compute_only import CSV, NAME, proof, refused, write
from runtime.exporters.torch_csv_cells import notes

EXPORTERS.register(
    Exporter(
        name=NAME,
        description="PyTorch's _PipelineScheduleRuntime: order of passes on every rank (compute_only)",
        suffix=CSV,
        write=write,
        refuse=refused,
        warnings=notes,
        proof=proof,
    )
)
