"""The registry of importers: `IMPORTERS`, each of which reads schedules that another program wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.file_names import stem_of
from pipesched.files.text_file import read_text
from pipesched.problem.passes import OF_PARAMETERS, Slot
from pipesched.problem.problem import Problem
from pipesched.registry import Registry
from pipesched.schedule.once_an_iteration import completed
from pipesched.schedule.schedule import Schedule
from pipesched.validation.validator import validate_schedule

Orders = list[list[Slot]]


@dataclass(frozen=True)
class Importer:
    """A format of schedules to read: `recognises` returns True for a text in this format.

    `read` returns the slots of every device in order; it raises `BadInput` for a broken text. `whole` is None unless
    the format has more than these: passes of modules and pieces, orders of streams, waits. It returns all of it as a
    schedule. It may raise `BadInput` for a text of which `read` can still read the slots.
    """

    name: str
    description: str
    recognises: Callable[[str], bool]
    read: Callable[[str], Orders]
    whole: Callable[[str], Schedule] | None = None


IMPORTERS: Registry[Importer] = Registry("runtime.importers", "import format")


def import_schedule(path: str | Path, problem: Problem) -> Schedule:
    """Read the schedule in another program's file, for a problem with the same stages, devices and micro-batches.

    Its name is the stem of the file. Slots of collectives that the problem does not have are left out, passes for
    parameters that the file lacks are added. `BadInput` lists what is wrong with the file, or the first five places
    where it does not match the problem.
    """
    text = read_text(path)
    importer = next((one for one in IMPORTERS if one.recognises(text)), None)
    if importer is None:
        known = "; ".join(f"{one.name} ({one.description})" for one in IMPORTERS)
        raise BadInput(f"{path}: found no schedule of a known format; allowed: {known}")
    whole = None if importer.whole is None else _whole(importer.whole, text, problem)
    if whole is not None:
        return Schedule(whole.orders, stem_of(path), whole.task_orders, whole.waits)
    try:
        orders = importer.read(text)
    except BadInput as error:
        raise BadInput(*(f"{path}: {mistake}" for mistake in error.mistakes)) from None
    rows = tuple(tuple(slot for slot in order if _is_run(problem, slot)) for order in orders)
    schedule = completed(problem, Schedule(rows, stem_of(path)))
    wrong = validate_schedule(problem, schedule)
    if wrong:
        raise BadInput(*(f"{path}: does not match {problem.name}: {violation.text}" for violation in wrong[:5]))
    return schedule


def _whole(read: Callable[[str], Schedule], text: str, problem: Problem) -> Schedule | None:
    """Return all of a schedule; None if `read` refuses the text, or the schedule is not one of this problem.

    The text may be of a schedule of another problem, with other passes.
    """
    try:
        found = read(text)
    except BadInput:
        return None
    return None if validate_schedule(problem, found) else found


def _is_run(problem: Problem, slot: Slot) -> bool:
    """Return True unless the slot is a collective that the problem does not have on that stage.

    Such a slot is left out.
    """
    kind, stage, _ = slot[0]
    stages = problem.stages
    return kind not in OF_PARAMETERS or (stage < len(stages) and kind in stages[stage].kinds_of_parameters)
