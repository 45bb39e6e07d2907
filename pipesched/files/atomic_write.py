"""Atomic file writes: into a temporary file in the same folder, then renamed; of a link, in the folder it leads to.

Where writing fails, as on a full disk, the file is as it was before.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pipesched.errors import BadInput


def make_folder(path: str | Path) -> Path:
    """Create the folder at `path` if it is missing, check that files can be written into it, and return its path.

    Commands call this before a long search. `BadInput` if it cannot be created or written to.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written into: {error.strerror}") from None


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file atomically: a reader sees the old content or the new, never a part. Returns the file's path.

    Where a device or a pipe is at the path (`/dev/stdout`), it is written to. `BadInput` if writing fails.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        place = target.resolve() if target.is_symlink() else target  # the link stays
        if place.exists() and not place.is_file() and not place.is_dir():
            place.write_bytes(data)
            return target
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise BadInput(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(place)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise BadInput(f"{target}: cannot be written: {error.strerror}") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target
