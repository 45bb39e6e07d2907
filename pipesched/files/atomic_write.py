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
        (folder.resolve() if folder.is_symlink() else folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise BadInput(f"{folder}: cannot be written into: {getattr(error, 'strerror', None) or error}") from None


def refuse_unwritable(path: str | Path) -> None:
    """Check that a file can be written at `path`; `BadInput` if not, as where a folder is there.

    Nothing is made: of missing folders, which `write_whole` makes, the last existing one above them is checked.
    Commands call this before a long search.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise BadInput(f"{target}: found a folder; allowed: the name of a file to write")
        if not is_device(target):
            folder = target.resolve().parent
            while not folder.exists():
                folder = folder.parent
            with tempfile.TemporaryFile(dir=folder):
                pass
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise BadInput(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


def is_device(path: Path) -> bool:
    """Return True if there is something at the path that is neither a file nor a folder, such as a pipe."""
    # A link of /proc to a pipe leads to no path: it is followed by the system alone.
    return path.exists() and not path.is_file() and not path.is_dir()


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file atomically: a reader sees the old content or the new, never a part. Returns the file's path.

    Text is written as UTF-8, missing folders are made, and of a link the file is replaced to which it leads. Where a
    device or a pipe is at the path (`/dev/stdout`), it is written to. `BadInput` if writing fails.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if is_device(target):
            target.write_bytes(data)
            return target
        place = target.resolve() if target.is_symlink() else target  # the link stays
        place.parent.resolve().mkdir(parents=True, exist_ok=True)  # a link may lead to no folder yet
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
