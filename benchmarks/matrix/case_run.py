"""One case through the reader, the search, an exact model and the commands, with the properties that are checked."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.matrix.commands_of import DEFECT, SECONDS, Ran, faults_of, of_problem, of_schedule, run
from benchmarks.matrix.draw import Case, text_of
from benchmarks.matrix.equal_documents import equal_documents
from benchmarks.matrix.exact.model import TooLargeError, optimum
from benchmarks.matrix.mutations import mutated
from benchmarks.matrix.outcome import Outcome
from benchmarks.matrix.page_calls import asked_of_the_page
from benchmarks.matrix.relaxations import poorer_problems, too_high
from benchmarks.matrix.states import replanned
from commands.shared.catalogue import Exit
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.schedule_file import save
from pipesched.problem.free_memory import reserving
from pipesched.problem.problem import Problem
from pipesched.results.free_memory import MostFree
from pipesched.results.solution import Solution, Status
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.solve import solve
from tests.support import task_brute_force

# Orders, and waits, that the search of every order tries at most.
_ORDERS, _WAITS = 400, 4
# Numbers of 17 digits are rounded to nine when the file is read.
_ROUNDED = Fraction(1, 10**7)
# Free memory beyond a bound, in the file's unit; more than what numbers of nine digits are rounded by.
_MORE = Fraction(1, 1000)
# Folder of a path: temporary, so that no page shows it.
_PATH = re.compile(r"(?:/[\w.-]+)+/([\w.-]+)")


def read(text: str) -> Problem:
    """The problem of a file's text."""
    return problem_from(json.loads(text, parse_float=Decimal))


def run_case(case: Case, thorough: bool) -> Outcome:
    """Everything of a case; `thorough` runs every command, else those of the solution alone."""
    found, text = Outcome("problem", case.names, case.seed), text_of(case.document)
    random = Random(f"{case.seed} claims {' '.join(case.names)}")
    try:
        problem = read(text)
        solution = solve(problem, Limits(seconds=SECONDS, workers=1))
    except BadInput as error:
        found.refused = error.mistakes
        found.faults += [f"refused in several lines: {line!r}" for line in error.mistakes if "\n" in line]
        return found
    except Exception as error:
        found.faults.append(as_fault("solve", error))
        found.document = text
        return found
    found.solved, found.proved = True, solution.status in (Status.OPTIMAL, Status.INFEASIBLE)
    found.faults += [f"solve: {note}" for note in solution.notes if DEFECT in note]
    _against_exact(found, case, problem, solution)
    steps: list[Callable[[], None]] = [
        lambda: _against_orders(found, problem, solution),
        lambda: _with_files(found, text, solution, random, thorough),
        lambda: found.faults.extend(equal_documents(case, problem, solution, random, thorough)),
        lambda: found.faults.extend(_poorer(problem, solution, random, thorough)),
    ]
    if "from a state" in case.switches or thorough:
        steps.append(lambda: found.faults.extend(replanned(problem, solution, random)))
    for step in steps:
        try:
            step()
        except BadInput as error:
            found.faults.append(f"refused: {error}")
        except Exception as error:
            found.faults.append(as_fault("claims", error))
    if found.faults:
        found.document = text
    return found


def _poorer(problem: Problem, solution: Solution, random: Random, thorough: bool) -> Iterator[str]:
    """Faults of relaxations: of one, or of all that change the problem; the time is bounded of the schedules that leave
    as much memory free as the solution."""
    found = list(poorer_problems(_by_time(problem, solution)))
    for one in found if thorough else random.sample(found, min(1, len(found))):
        yield from too_high(one, solution)


def _by_time(problem: Problem, solution: Solution) -> Problem:
    """The problem of the schedules that the solution compares by time: those that leave as much memory free."""
    left = solution.free
    return problem if left is None else reserving(problem, int(left.value / problem.resolution))


def as_fault(where: str, error: Exception) -> str:
    """An exception as a fault."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{where}: traceback: {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})"


def _against_exact(found: Outcome, case: Case, problem: Problem, solution: Solution) -> None:
    """Bound <= optimum <= value, and both equal where proved."""
    if problem.objective.repeats:
        return
    notes = " ".join(note for note in problem.notes if "rounded" in note)
    slack = _ROUNDED if notes else Fraction(0)
    rounded = _ROUNDED if "memory to multiples" in notes else Fraction(0)
    left = solution.free or MostFree(Fraction(0), Fraction(0))
    try:
        least, most = optimum(case.plain, rounded=rounded, reserved=left.value)
        if solution.free is not None:
            more = optimum(case.plain, rounded=rounded, reserved=left.bound + _MORE)
            if more.most is not None:
                found.faults.append(f"wrong: more memory can be left free than {float(left.bound)}")
    except TooLargeError:
        return
    found.exact = True
    value, bound = (_in_units(solution.problem, own) for own in (solution.value_ticks, solution.lower_bound_ticks))
    if solution.status is Status.INFEASIBLE:
        if most is not None:
            found.faults.append(f"wrong: infeasible, where {float(most)} is possible")
        return
    if least is None:
        if value is not None:
            found.faults.append(f"wrong: value {float(value)}, where nothing fits")
        return
    if value is not None and value < least * (1 - slack):
        found.faults.append(f"wrong: value {float(value)} below the optimum {float(least)}")
    if most is not None and bound is not None and bound > most * (1 + slack):
        kind = solution.certificate.kind if solution.certificate else "none"
        found.faults.append(f"wrong: bound {float(bound)} ({kind}) above the optimum {float(most)}")


def _in_units(problem: Problem, ticks: int | Fraction | None) -> Fraction | None:
    return None if ticks is None else Fraction(ticks) * problem.tick


def _against_orders(found: Outcome, problem: Problem, solution: Solution) -> None:
    """The same against every order of every stream, where these are few."""
    if problem.objective.repeats or problem.overlaps:
        return
    modes = 2 ** (len(problem.stages) * problem.microbatches) if problem.splittable else 1
    savings = 1
    for stage, own in enumerate(problem.stages):
        savings *= (own.may_keep + bool(own.offload) + len(own.recompute)) ** len(problem.microbatches_of[stage])
    if modes * savings > 64 or any(own.gather for own in problem.stages):
        return
    problem = _by_time(problem, solution)
    try:
        best = task_brute_force.optimum(problem, problem.objective, _WAITS, _ORDERS)
    except task_brute_force.TooManyOrdersError:
        return
    found.brute = True
    if best is None:
        if solution.value_ticks is not None:
            found.faults.append("wrong: a value, where no order fits")
        return
    if solution.status is Status.INFEASIBLE:
        found.faults.append(f"wrong: infeasible, where an order takes {best}")
        return
    finer = problem.tick / solution.problem.tick
    if solution.value_ticks is not None and solution.value_ticks < best * finer:
        found.faults.append(f"wrong: value {solution.value_ticks} ticks below every order, {best * finer}")
    if solution.lower_bound_ticks is not None and solution.lower_bound_ticks > best * finer:
        found.faults.append(f"wrong: bound {solution.lower_bound_ticks} ticks above the best order, {best * finer}")


def _with_files(found: Outcome, text: str, solution: Solution, random: Random, thorough: bool) -> None:
    """The solution as a file: valid and accepted as it is, refused when changed; and through the commands."""
    if solution.timeline is None:
        return
    found.faults += [f"wrong: invalid schedule: {one}" for one in validate(solution.timeline)[:2]]
    with TemporaryDirectory() as place:
        folder = Path(place)
        path, kept = folder / "problem.json", folder / "schedule.json"
        path.write_text(text, encoding="utf-8")
        save(solution, kept)
        ran = [accepted(run("validate", str(kept))), accepted(run("check", str(kept)))]
        if thorough or random.random() < 0.1:
            ran.append(accepted(run("check", str(kept), "--again", "--workers", "1", "--time-limit", str(SECONDS))))
        if thorough:
            ran += list(of_problem(path, kept, folder))
            ran += [Ran(code, "", "", (f"page: {name}: {fault}",) if fault else ())
                    for name, code, fault in asked_of_the_page(text, SECONDS)]  # fmt: skip
        if not thorough and random.random() < 0.1:
            ran += list(of_schedule(str(kept), folder))
        wrong = folder / "wrong.json"
        for what, command, other in mutated(kept.read_text(encoding="utf-8"), random):
            wrong.write_text(other, encoding="utf-8")
            answer = run(command, str(wrong))
            ran.append(answer)
            if answer.code == Exit.DONE:
                found.faults.append(f"wrong: {command} accepts a file {what}")
        found.commands += len(ran)
        found.faults += faults_of(ran)


def accepted(ran: Ran) -> Ran:
    """The run, with a fault if a file of our own was refused."""
    if ran.code == Exit.DONE:
        return ran
    lines = [_PATH.sub(r"\1", line) for line in (ran.out + ran.err).strip().splitlines()[:3]]
    return ran._replace(faults=(*ran.faults, f"wrong: our own file is refused: {lines}"))
