"""Schedule files (JSON): problem, order, exact start of every pass, value, lower bound and certificate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from pipesched.arguments import refuse_other
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.compressed import packed
from pipesched.files.exact_numbers import write_json
from pipesched.files.other_kinds import FileKind, refuse_other_kinds
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems.document import problem_document
from pipesched.files.rounding import LARGEST
from pipesched.files.schedules.reader import ScheduleReader
from pipesched.files.schedules.task_texts import start_texts, task_keys
from pipesched.files.schema_errors import shown
from pipesched.problem.formatting import amount, plain
from pipesched.problem.free_memory import giving_back, reserving
from pipesched.problem.objectives.free_memory import FREE_MEMORY
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence_document import evidence_document
from pipesched.results.free_memory import MostFree, left_by
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.schedule import slot_text
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from pipesched.version import VERSION

FORMAT = "pipesched-schedule"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ScheduleFile:
    """Contents of a schedule file; fields that end in `_ticks` are in ticks of the timeline's problem.

    `value_ticks` is the value that the file states, `lower_bound_ticks` the bound, with its argument (`certificate`);
    None where the file states none. `free` is the free memory, None unless it is maximised before the time.
    """

    timeline: Timeline
    lower_bound_ticks: Ticks | None = None
    certificate: Certificate | None = None
    value_ticks: Ticks | None = field(default=None, compare=False)  # as stated; the timeline has its own
    free: MostFree | None = None

    @classmethod
    def of(cls, solution: Solution, timeline: Timeline) -> ScheduleFile:
        """Return the contents of a schedule file for a solution, with its value and bound, and its timeline."""
        known = cls(timeline, solution.lower_bound_ticks, solution.certificate, solution.value_ticks)
        return known if solution.free is None else known.leaving(solution.free)

    def leaving(self, free: MostFree) -> ScheduleFile:
        """Return the contents with this free memory stated, and with a problem that has all of its memory again.

        The solution is of a problem with this amount of memory less.
        """
        own = self.timeline.problem
        amount = int(free.value / own.resolution)
        objective = FREE_MEMORY.then(own.objective)
        problem = giving_back(own, replace(own, objective=objective), amount)
        return replace(self, timeline=replace(self.timeline, problem=problem), free=free)

    @property
    def bounded(self) -> Problem:
        """The problem for which the lower bound is valid: the timeline's, with the stated free memory subtracted."""
        problem = self.timeline.problem
        if problem.objective.leaves is None:
            return problem
        return reserving(problem, 0 if self.free is None else int(self.free.value / problem.resolution))

    @property
    def value(self) -> float | None:
        """The value that the file states, in its unit of time; None where it states none."""
        return self._in_units(self.value_ticks)

    @property
    def lower_bound(self) -> float | None:
        """The lower bound that the file states, in its unit of time; None where it states none."""
        return self._in_units(self.lower_bound_ticks)

    def _in_units(self, ticks: Ticks | None) -> float | None:
        return None if ticks is None else self.timeline.problem.in_units(ticks)

    @property
    def metrics(self) -> Metrics:
        """The metrics of the timeline; for a period, which a timeline does not have, with the stated value."""
        found, aim = measure(self.timeline), self.timeline.problem.objective
        return replace(found, period_ticks=self.value_ticks) if aim.repeats else found

    def false_claims(self) -> list[str]:
        """Return a line for each stated figure that the file's own timeline contradicts.

        Empty if there is none, and if the timeline is invalid. The value must be that of the timeline, and bounds must
        not exceed it. The timeline must leave the free memory stated, and no more than the bound on it.
        """
        problem, found = self.timeline.problem, []
        if validate(self.timeline):
            return []
        if self.free is not None:
            left = left_by(self.timeline) * problem.resolution
            stated, true = plain(float(self.free.value)), plain(float(left))
            if left < self.free.value:
                found.append(f"the file states free memory of {stated}; its timeline leaves {true}")
            if self.free.bound < left:
                found.append(
                    f"the file states that no schedule leaves more than {plain(float(self.free.bound))}; its "
                    f"own leaves {true}"
                )
        metrics, aim = self.metrics, problem.objective
        value = metrics.period_ticks if aim.repeats else metrics.value_ticks(aim)
        if value is None:  # a period that the file does not state
            return found
        if self.value_ticks is not None and self.value_ticks != value:
            stated, true = amount(problem, self.value_ticks), amount(problem, value)
            found.append(f"the file states a {problem.objective} of {stated}; its timeline has {true}")
        certified = self.certificate.value_ticks if self.certificate else None
        for name, bound in (("lower bound", self.lower_bound_ticks), ("certificate", certified)):
            if bound is not None and bound > value:
                stated, true = amount(problem, bound), amount(problem, value)
                found.append(f"the file states a {name} of {stated}, above its own timeline's {true}")
        return found


def to_text(file: ScheduleFile) -> str:
    """Return the text of a schedule file; ValueError if no problem file can express its problem."""
    return write_json(schedule_document(file))


def schedule_document(file: ScheduleFile) -> dict[str, object]:
    """Return the contents of a schedule file as a document; ValueError if no problem file can express its problem.

    Its times are in ticks, whose length is under `tick` as exact text; `problem` and `free_memory` are in the problem
    file's units. `value`, `lower_bound` and `certificate` are None where unknown; the keys `free_memory`, `task_orders`
    and `waits` are missing where there are none. `orders` has the slots of each device as text, `starts` the start of
    each task by name. `schedule` and `objective` are names; `format`, `format_version` and `tool` describe the file.
    """
    timeline, problem = file.timeline, file.timeline.problem
    aim = problem.objective
    # No timeline tells its period: it is stated, or unknown.
    value = file.value_ticks if aim.repeats else measure(timeline).value_ticks(aim)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tool": f"pipesched {VERSION}",
        "schedule": timeline.schedule.name,
        "problem": problem_document(problem),
        "tick": str(problem.tick),
        "objective": problem.objective.name,
        "value": value,
        **({} if file.free is None else {"free_memory": file.free.stated()}),
        "lower_bound": file.lower_bound_ticks,
        "certificate": certificate_document(file.certificate),
        "orders": [[slot_text(slot, problem) for slot in order] for order in timeline.schedule.orders],
        **task_keys(problem, timeline.schedule),
        "starts": start_texts(timeline),
    }


def save(what: Solution | Timeline | ScheduleFile, path: str | Path) -> Path:
    """Write a schedule file (JSON, compressed if the path ends in .gz), which every command reads; returns its path.

    `BadInput` if a solution has no schedule, or the file cannot be written. ValueError if no problem file can express
    its problem.
    """
    refuse_other("save", what, (Solution, Timeline, ScheduleFile), "a Solution, a Timeline or a ScheduleFile")
    if isinstance(what, Timeline):
        what = ScheduleFile(what)
    if isinstance(what, Solution):
        if what.timeline is None:
            raise BadInput(f"{path}: found a solution without a schedule; allowed: one with a schedule")
        what = ScheduleFile.of(what, what.timeline)
    return write_whole(path, packed(Path(path), to_text(what)))


def certificate_document(certificate: Certificate | None) -> dict[str, object] | None:
    """Return a certificate as the object under the key `certificate`; None where there is none.

    It has `kind`, `value` in ticks, `text`, `device`, None if it is about the whole problem, and any `evidence`.
    """
    if certificate is None:
        return None
    document: dict[str, object] = {
        "kind": certificate.kind,
        "value": certificate.value_ticks,
        "text": certificate.text,
        "device": certificate.device,
    }
    return document | ({} if certificate.evidence is None else {"evidence": evidence_document(certificate.evidence)})


def read_schedule(path: str | Path) -> ScheduleFile:
    """Read a schedule file; `BadInput` says what is malformed. Rules of schedules are left for `validate` to check."""
    return schedule_from(read_document(path), str(path))


def schedule_from(document: object, path: str) -> ScheduleFile:
    """Return the contents of a schedule file from its document; rules of schedules are left for `validate` to check.

    The problem's tick may be finer than that of its own file, where the schedule has fractions of it. `path` names the
    file in the messages of `BadInput`, raised for what is malformed.
    """
    refuse_other_kinds(document, path, FileKind.SCHEDULE)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadInput(f"{path}: not a schedule file (its `format` is not {FORMAT!r}); `pipesched solve` writes one")
    version = document.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise BadInput(
            f"{path}: format_version: found {shown(version)}; this version of the tool reads up to {FORMAT_VERSION}"
        )
    # Rounded where it was first read. What features made of it, such as stages of a slow worker, may need more steps.
    problem = problem_from(document.get("problem"), f"{path}: problem", most_steps=LARGEST)
    reader = ScheduleReader(path, document, problem)
    problem = reader.problem
    timeline = Timeline(problem, reader.schedule(), reader.starts())
    reader.check_objective(problem)
    free = reader.free_memory() if problem.objective.leaves is not None else None
    return ScheduleFile(timeline, reader.ticks("lower_bound"), reader.certificate(), reader.ticks("value"), free)
