"""The manifest of an output folder, by which a command removes the files of its earlier runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands.shared.output import note
from pipesched.files.atomic_write import write_whole
from pipesched.version import VERSION

MANIFEST = "pipesched-manifest.json"
# Commands that write the answer to a problem: a folder holds one of them. Runs and sweeps are kept beside it.
_ANSWERS = frozenset(("solve", "plan", "layouts"))


def record_output(folder: str | Path, command: str, written: Sequence[Path]) -> None:
    """Enter a command's files into the manifest of a folder, and remove its earlier files that were not written again.

    `solve`, `plan` and `layouts` also remove each other's files, so that a folder has one answer. A file whose content
    the user has changed is left, and only taken out of the manifest, and a message says so; if nothing was written now,
    nothing is removed, and a message says that earlier files are still there. Files of other commands are not touched.
    The files `written` are in `folder`.
    """
    folder = Path(folder)
    entries = _entries(folder)
    own = _ANSWERS if command in _ANSWERS else {command}
    earlier = {name: entry["command"] for name, entry in entries.items() if entry["command"] in own}
    there = {name: of for name, of in earlier.items() if (folder / name).is_file()}
    if not written:
        if there:
            of = " and ".join(f"`{one}`" for one in sorted(set(there.values())))
            note(f"note: nothing was written; {folder} still holds what an earlier {of} wrote there")
        return
    stale = {name: entries[name]["sha256"] for name in there.keys() - {path.name for path in written}}
    kept = {name: entry for name, entry in entries.items() if name not in earlier}
    now = {path.name: {"command": command, "sha256": _hash(path), "version": VERSION} for path in written}
    for name, content in sorted(stale.items()):
        if _hash(folder / name) == content:
            (folder / name).unlink()
            note(f"note: removed {folder / name}, which an earlier `{there[name]}` wrote and this one does not")
        else:
            note(f"note: {folder / name} is not of this `{command}`; an earlier one wrote it, but it was changed since")
    # Last: a program that is ended before leaves entries by which the next one removes what is out of date.
    write_whole(folder / MANIFEST, json.dumps({"files": kept | now}, indent=1, sort_keys=True) + "\n")


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a folder's manifest by file name; empty if there is none, or it is not ours.

    An entry has the command that wrote the file, the program's version, and the SHA-256 of the content. Paths outside
    the folder are ignored.
    """
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {
            str(name): {"command": entry["command"], "sha256": entry["sha256"], "version": entry["version"]}
            for name, entry in found.items()
            if Path(name).name == name
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
