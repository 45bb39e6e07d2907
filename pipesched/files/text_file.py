"""The text of an input file, whatever wrote it: decompressed, without byte-order mark, with lines ended by newlines."""

from __future__ import annotations

from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.compressed import DAMAGED, opened
from pipesched.files.file_names import is_compressed
from pipesched.files.limits import MOST_BYTES


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file, decompressed if its name ends in .gz.

    `BadInput` if it cannot be read, is damaged, or is larger than `MOST_BYTES`. Spreadsheets and some editors begin a
    file with a byte-order mark, and end lines as Windows does: the text has neither.
    """
    file = Path(path)
    try:
        with opened(file) if is_compressed(file) else file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise BadInput(f"{path}: found more than {MOST_BYTES} bytes; allowed: up to so many")
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: found a folder; allowed: a file{_in_folder(file)}") from None
    except DAMAGED:
        raise BadInput(f"{path}: cannot be read: it is not a whole file of gzip") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: cannot be read: it is not a text file") from None


def _in_folder(path: Path) -> str:
    """Return text that names the known files of a folder, for a message on a folder in place of a file.

    Empty if none.
    """
    names = ("schedule.json", "plan.json", "problem.yaml", "model.yaml", "config.json")
    known = [str(path / name) for name in names if (path / name).is_file()]
    return f", such as {' or '.join(known)}" if known else ""
