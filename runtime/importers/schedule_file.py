"""Importer of pipesched's own schedule files, to compare one problem's schedule on another problem."""

from __future__ import annotations

import re

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.files.schedule_file import FORMAT, schedule_from
from pipesched.schedule.schedule import Schedule, parse_slot
from runtime.importers.catalogue import IMPORTERS, Importer, Orders

_FORMAT = re.compile(rf'\s*\{{\s*"format"\s*:\s*"{FORMAT}"')


def _recognises(text: str) -> bool:
    return _FORMAT.match(text) is not None


def _read(text: str) -> Orders:
    document = read_json(text, "schedule file")
    orders = document.get("orders") if isinstance(document, dict) else None
    if not isinstance(orders, list) or not all(isinstance(order, list) for order in orders):
        raise BadInput("orders: found no list of lists; allowed: one list of slots a device")
    return [[parse_slot(str(slot)) for slot in order] for order in orders]


def _whole(text: str) -> Schedule:
    return schedule_from(read_json(text, "schedule file"), "schedule file").timeline.schedule


IMPORTERS.register(
    Importer(
        name="pipesched",
        description="a schedule file that `solve` or `simulate` wrote",
        recognises=_recognises,
        read=_read,
        whole=_whole,
    )
)
