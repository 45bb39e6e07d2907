"""Importer of programs as `export --format program` writes them: the order of passes on every device."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.problem.passes import Pass, PassKind, Slot
from pipesched.schedule.schedule import overlapped
from runtime.importers.catalogue import IMPORTERS, Importer, Orders

# Words of the format, which its exporter writes too.
NAME, FORMAT = "program", "pipesched-program 1"
BLOCK, SEND, RECV = "BLOCK", "SEND", "RECV"


def _recognises(text: str) -> bool:
    return text.lstrip().startswith("{") and f'"{FORMAT}"' in text


def _read(text: str) -> Orders:
    """Return the order of passes on each device from the file's text.

    Sends and receives follow from it and are ignored. `BadInput` if the file has no such orders.
    """
    document = read_json(text, "program")
    rows = document.get("programs") if isinstance(document, dict) else None
    if isinstance(document, dict) and rows is None and "streams" in document:
        raise BadInput("programs: found streams alone; allowed: programs, the order of whole passes")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise BadInput("programs: found no list of instructions for each device")
    orders: Orders = []
    for device, row in enumerate(rows):
        try:
            orders.append([_slot(step) for step in row if step["do"] not in (SEND, RECV)])
        except (KeyError, TypeError, ValueError):
            raise BadInput(f"programs, device {device}: allowed: instructions with do, stage and microbatch") from None
    return orders


def _slot(step: dict[str, object]) -> Slot:
    if step["do"] == BLOCK:
        passes = step["passes"]
        if not isinstance(passes, list):
            raise TypeError
        forward, backward = map(_read_pass, passes)
        return overlapped(forward, backward)
    return (_read_pass(step),)


def _read_pass(step: dict[str, object]) -> Pass:
    kind, stage, microbatch = step["do"], step["stage"], step["microbatch"]
    if not isinstance(kind, str) or not isinstance(stage, int) or not isinstance(microbatch, int):
        raise TypeError
    return Pass(PassKind(kind), stage, microbatch)


IMPORTERS.register(
    Importer(name=NAME, description="the program of every device, as exported", recognises=_recognises, read=_read)
)
