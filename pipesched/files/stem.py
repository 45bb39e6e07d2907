"""The stem of a file's name as text, by which what the file holds is named where it gives no name."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def stem_of(path: str | PathLike[str]) -> str:
    """Return the stem of a path; bytes of the name that are no UTF-8, which no text file can hold, become `?`."""
    return Path(path).stem.encode("utf-8", "replace").decode()
