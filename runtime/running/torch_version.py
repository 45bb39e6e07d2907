"""CSV versions that the installed PyTorch reads; does not import it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version


def csv_version() -> str:
    """The value of the option `torch` of `torch-csv-comms`; the first one where PyTorch is not installed."""
    try:
        found = re.match(r"(\d+)\.(\d+)", version("torch"))
    except PackageNotFoundError:
        found = None
    return "2.15" if found and (int(found[1]), int(found[2])) >= (2, 15) else "2.13"
