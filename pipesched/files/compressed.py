"""Files compressed by gzip: their names end in .gz after the ending of the format, as in `schedule.json.gz`."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

ENDING = ".gz"
# What reading a damaged file raises, besides `OSError`.
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)


def opened(path: Path) -> BinaryIO:
    """Open a file for reading its bytes, decompressed where its name ends in .gz."""
    if path.suffix.lower() == ENDING:
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def own_ending(path: Path) -> str:
    """Return a file name's ending without `.gz`, in lower case: `.json` for `schedule.json.gz`."""
    return (path.with_suffix("") if path.suffix.lower() == ENDING else path).suffix.lower()


def packed(path: Path, text: str) -> bytes:
    """Return text as the bytes of a file of this name, compressed if it ends in .gz; equal texts give equal bytes."""
    data = text.encode()
    return gzip.compress(data, 9, mtime=0) if path.suffix.lower() == ENDING else data
