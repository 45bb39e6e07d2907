"""Reader of the parts of a schedule file, in ticks of a problem refined until every time is whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.schedules.task_texts import TaskReader
from pipesched.files.schema_errors import shown
from pipesched.problem.formatting import visible
from pipesched.problem.passes import Task
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import Ticks
from pipesched.problem.rescale import finer
from pipesched.results.certificate import Certificate
from pipesched.results.evidence_document import evidence_from
from pipesched.results.free_memory import MostFree, free_from
from pipesched.schedule.schedule import Schedule, parse_slot


class ScheduleReader:
    """Reader of the keys of a schedule file other than the problem; it converts the file's ticks to ticks of `problem`.

    `problem` is the problem given to it, in finer ticks if the file's numbers are fractions of a tick. The constructor
    and all methods raise `BadInput` for values of another form; a key that may be missing gives None.
    """

    def __init__(self, path: str, document: Mapping[str, Any], problem: Problem) -> None:
        self._path, self._document = path, document
        tick = Fraction(0)
        if re.fullmatch(r"\d{1,40}(\.\d{1,40})?(/\d{1,40})?", str(document.get("tick"))):
            with suppress(ValueError, ZeroDivisionError):
                tick = Fraction(str(document.get("tick")))
        if tick <= 0:
            text = shown(document.get("tick"))
            raise BadInput(f"{path}: tick: found {text}; allowed: a fraction above 0, such as 1/1000")
        factor = tick / problem.tick
        # A period or span may be a fraction of the tick that the problem's times need: the file's own is then finer.
        fraction = factor.numerator == 1 and self._in_fractions(problem.objective, factor.denominator)
        self.problem = finer(problem, factor.denominator) if fraction else problem
        self._factor = tick / self.problem.tick
        self._tasks = TaskReader(self.problem)

    def _in_fractions(self, objective: Objective, parts: int) -> bool:
        """Return True if the file's numbers may count parts of the problem's tick.

        True for a period, whose bound may be a fraction of a tick, and for a span with a number that `parts`, those of
        a tick in which such files count, does not divide.
        """
        starts, certificate = (self._document.get(key) for key in ("starts", "certificate"))
        numbers = [self._document.get(key) for key in ("value", "lower_bound")]
        numbers += [*starts.values()] if isinstance(starts, dict) else []
        numbers += [certificate.get("value")] if isinstance(certificate, dict) else []
        uneven = any(isinstance(number, int) and number % parts for number in numbers)
        return objective.repeats or (objective.by_device and uneven)

    def schedule(self) -> Schedule:
        """Return the orders of devices, with those of streams and waits if the file has them; `BadInput` if wrong."""
        orders = self._document.get("orders")
        if not isinstance(orders, list) or not all(isinstance(order, list) for order in orders):
            raise BadInput(f"{self._path}: orders: found no list of lists; allowed: one list of slots a device")
        try:
            texts = ((one if isinstance(one, str) else shown(one) for one in order) for order in orders)
            slots = tuple(tuple(parse_slot(text, self.problem) for text in order) for order in texts)
        except BadInput as error:
            raise BadInput(f"{self._path}: orders: {error}") from None
        name, tasks = visible(str(self._document.get("schedule", ""))), self._document.get("task_orders")
        try:
            task_orders = None if tasks is None else self._tasks.orders(tasks)
            waits = self._document.get("waits")
            return Schedule(slots, name, task_orders, () if waits is None else self._tasks.waits(waits))
        except BadInput as error:
            raise BadInput(f"{self._path}: {error}") from None

    def starts(self) -> dict[Task, Ticks]:
        """Return the start in ticks of every task that the file gives one; `BadInput` if wrong."""
        starts = self._document.get("starts")
        if not isinstance(starts, dict):
            raise BadInput(f"{self._path}: starts: found none; allowed: the start of every pass, in ticks")
        try:
            return {self._tasks.task(str(task)): self._whole(f"starts.{task}", tick) for task, tick in starts.items()}
        except BadInput as error:
            prefix = "" if str(error).startswith(self._path) else f"{self._path}: starts: "
            raise BadInput(f"{prefix}{error}") from None

    def ticks(self, key: str) -> Ticks | None:
        """Return the value of a top-level key, a time, in ticks; None where the file does not give it."""
        value = self._document.get(key)
        return None if value is None else self._whole(key, value)

    def check_objective(self, problem: Problem) -> None:
        """Raise `BadInput` if the file states another objective than the problem has."""
        stated = self._document.get("objective", problem.objective.name)
        if stated != problem.objective.name:
            allowed = f"{problem.objective}, as its problem says"
            raise BadInput(f"{self._path}: objective: found {shown(stated)}; allowed: {allowed}")

    def free_memory(self) -> MostFree | None:
        """Return the free memory that the file states, with its bound.

        None where it states none, `BadInput` if it is wrong.
        """
        stated = self._document.get("free_memory")
        if stated is None:
            return None
        with suppress(KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            found = free_from(stated)
            if (found.value / self.problem.resolution).denominator == 1 and 0 <= found.value <= found.bound:
                return found
        allowed = "value and upper_bound, multiples of the problem's resolution"
        raise BadInput(f"{self._path}: free_memory: found {shown(stated)}; allowed: {allowed}")

    def certificate(self) -> Certificate | None:
        """Return the certificate of the lower bound; None where the file has none, `BadInput` if it is wrong."""
        given = self._document.get("certificate")
        if given is None:
            return None
        if not isinstance(given, dict):
            raise BadInput(f"{self._path}: certificate: found {shown(given)}; allowed: kind, value, text and device")
        device, evidence = given.get("device"), given.get("evidence")
        return Certificate(
            kind=visible(str(given.get("kind"))),
            value_ticks=self._whole("certificate.value", given.get("value")),
            text=visible(str(given.get("text"))),
            device=device if isinstance(device, int) else None,
            evidence=None if evidence is None else evidence_from(evidence),
        )

    def _whole(self, key: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            ticks = value * self._factor
            if ticks.denominator == 1 and abs(ticks) < 2**62:
                return int(ticks)
        raise BadInput(f"{self._path}: {key}: found {shown(value)}; allowed: a whole number of ticks")
