"""File names: as text, by which what a file holds is named where it gives no name, and without the ending .gz."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def stem_of(path: str | PathLike[str]) -> str:
    """Return the name of a file without folder, ending and .gz: `a` of `b/a.yaml.gz`.

    Bytes of the name that are no UTF-8, which no text file can hold, become `?`.
    """
    return as_text(uncompressed(Path(path)).stem)


def as_text(name: str) -> str:
    """Return a file name with `?` for each of its bytes that is no UTF-8."""
    return name.encode("utf-8", "replace").decode()


def is_compressed(path: Path) -> bool:
    """Return True if a file of this name is compressed by gzip: the name ends in .gz."""
    return path.suffix.lower() == ".gz"


def uncompressed(path: Path) -> Path:
    """Return the path of the file that a compressed one holds, as `schedule.json` of `schedule.json.gz`."""
    return path.with_suffix("") if is_compressed(path) else path
