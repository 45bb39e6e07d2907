"""Files compressed by gzip: their names end in .gz after the ending of the format, as in `schedule.json.gz`."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from pipesched.files.file_names import is_compressed

# What reading a damaged file raises, besides `OSError`.
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)


def opened(path: Path) -> BinaryIO:
    """Open a compressed file for reading its bytes, decompressed; the caller closes it.

    `OSError` if it cannot be opened; reading a damaged one raises an error of `DAMAGED`.
    """
    return cast(BinaryIO, gzip.open(path, "rb"))


def packed(path: Path, text: str) -> bytes:
    """Return text as the bytes of a file of this name: UTF-8, compressed if the name ends in .gz.

    Equal texts give equal bytes.
    """
    data = text.encode()
    return gzip.compress(data, 9, mtime=0) if is_compressed(path) else data
