"""Writes a schedule as the CSV file that PyTorch's pipeline runtime loads: one row a device, one cell a pass.

The file is for `_PipelineScheduleRuntime._load_csv(path, format="compute_only")` of torch 2.13 to 2.15; torch adds the
sends and receives itself. The side file says what a CSV cannot: which rank builds which stages, how the micro-batches
were renumbered, and what to mind when running it.
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
