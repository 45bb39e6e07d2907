"""The CSV version for the installed PyTorch, found without importing it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version


def csv_version() -> str:
    """Return the value for the option `torch` of `torch-csv-comms` that fits the PyTorch installed here.

    `2.15` for PyTorch from that version on, else, and without PyTorch, `2.13`.
    """
    try:
        found = re.match(r"(\d+)\.(\d+)", version("torch"))
    except PackageNotFoundError:
        found = None
    return "2.15" if found and (int(found[1]), int(found[2])) >= (2, 15) else "2.13"
