"""One plan file through the reader, the search, every partition by the exact model, and the commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.matrix.case_run import accepted, as_fault
from benchmarks.matrix.commands_of import SECONDS, Ran, faults_of, of_schedule, run
from benchmarks.matrix.draw import text_of
from benchmarks.matrix.exact.model import TooLargeError, optimum
from benchmarks.matrix.numbers import spelled
from benchmarks.matrix.outcome import Outcome
from benchmarks.matrix.plan_switches import BY_NAME, base
from benchmarks.matrix.switch import Draft, with_needed
from commands.shared.catalogue import Exit
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problems.document import problem_document
from pipesched.layers.free_memory import reserving
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Objective
from tests.support.plan_brute_force import partitions

# Partitions of which all orders are tried, at most.
_MOST = 40


def plan_document(names: tuple[str, ...], seed: int) -> dict[str, Any]:
    """The document of a plan file with these switches."""
    random = Random(f"{seed} plan {' '.join(sorted(names))}")
    draft = Draft(random, {})
    base(draft)
    chosen = with_needed(BY_NAME, names)
    for switch in chosen:
        switch.write(draft)
    numbers = next((one.name for one in chosen if one.group == "numbers"), "")
    found: dict[str, Any] = spelled(draft.document, numbers, random)[0]
    return found


def run_plan(names: tuple[str, ...], seed: int, thorough: bool) -> Outcome:
    """Everything of a plan."""
    found, text = Outcome("plan", names, seed), text_of(plan_document(names, seed))
    try:
        plan = plan_problem_from(json.loads(text, parse_float=Decimal))
    except BadInput as error:
        found.refused = error.mistakes
        return found
    except Exception as error:
        found.faults.append(as_fault("read", error))
        found.document = text
        return found
    with TemporaryDirectory() as place:
        folder = Path(place)
        path = folder / "plan.json"
        path.write_text(text, encoding="utf-8")
        ran = [*_commands(found, plan, path, folder, thorough)]
        found.commands += len(ran)
        found.faults += faults_of(ran)
    if found.faults:
        found.document = text
    return found


def _commands(found: Outcome, plan: PlanProblem, path: Path, folder: Path, thorough: bool) -> Iterator[Ran]:
    limits, out = ("--time-limit", str(SECONDS), "--workers", "1"), folder / "out"
    # Pictures take most of the time.
    written = ("-o", str(out)) if thorough or found.seed % 5 == sum(map(len, found.names)) % 5 else ()
    answer = run("plan", str(path), "--json", *written, *limits)
    yield answer
    if answer.code not in (Exit.DONE, Exit.NO, Exit.NOT_FOUND):
        found.refused = tuple(answer.err.strip().splitlines()[-1:])
        return
    answered = json.loads(answer.out, parse_float=Decimal)
    found.solved, found.proved = True, answered["status"] in ("optimal", "infeasible")
    _against_exact(found, plan, answered)
    if (out / "plan.json").exists():
        yield accepted(run("check", str(out / "plan.json")))
        yield accepted(run("validate", str(out / "schedule.json")))
        yield accepted(run("check", str(out / "schedule.json")))
        yield from _mutated(found, out / "plan.json", folder)
    if thorough:
        yield run("compare", str(path), "--json", "--schedules", "1f1b,gpipe", *limits)
        yield run("layers", str(path), "--json")
        for settings in ("megatron", "torchtitan", "deepspeed"):
            yield run("plan", str(path), "--json", "--settings", settings, "--time-limit", "1", "--workers", "1")
        if (out / "schedule.json").exists():
            yield run("check", str(out / "plan.json"), "--again", *limits)
            yield from of_schedule(str(out / "schedule.json"), folder)


def _mutated(found: Outcome, path: Path, folder: Path) -> Iterator[Ran]:
    """A bound above the value is refused."""
    document = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    if document.get("value") is None or document.get("lower_bound") is None:
        return
    value = document["value"]
    changed = {"lower_bound": str(Fraction(value) + 1) if isinstance(value, str) else value + 1}
    wrong = folder / "wrong.json"
    wrong.write_text(text_of(document | changed), encoding="utf-8")
    answer = run("check", str(wrong))
    yield answer
    if answer.code == Exit.DONE:
        found.faults.append("wrong: check accepts a plan whose bound is above its value")


def _by_time(plan: PlanProblem, answer: dict[str, Any]) -> PlanProblem:
    """The plans that leave as much memory free as the answer says, which it compares by time; else all of them."""
    left = answer.get("free_memory")
    # JSON has no exact text of a layer's share.
    return plan if left is None else reserving(plan, Fraction(left["value"]).limit_denominator(10**4))


def _against_exact(found: Outcome, plan: PlanProblem, answer: dict[str, Any]) -> None:
    """Every partition, recomputation and order, where these are all that is open and few."""
    given = plan.modules or plan.variants or plan.schedules or plan.even
    pieces = not all(choice.whole for choice in plan.choices)
    if given or pieces or any("rounded" in note for note in plan.notes):
        return
    plan = _by_time(plan, answer)
    values, count = [], 0
    try:
        for choice in plan.choices:
            if len(choice.on(plan.cluster.devices).chains[0]) > len(plan.model.sequence):
                continue
            for partition in islice(partitions(plan, choice), _MOST + 1):
                count += 1
                if count > _MOST:
                    return
                aim = Objective.MAKESPAN if plan.objective.repeats else plan.objective
                problem = replace(plan.problem(choice, partition), objective=aim)
                values.append(optimum(in_fractions(problem_document(problem))))
    except TooLargeError:
        return
    found.exact = True
    value, bound = (None if answer.get(key) is None else Fraction(answer[key]) for key in ("value", "lower_bound"))
    fitting = [one for one in values if one.least is not None]
    slack = Fraction(1, 10**9)  # JSON has no more digits of a fraction
    if not fitting:
        if value is not None:
            found.faults.append(f"wrong: plan {float(value)}, where none fits")
        return
    least = min(one.least for one in fitting if one.least is not None)
    most = min((one.most for one in fitting if one.most is not None), default=None)
    # One iteration after the other is a schedule without end.
    least, most = (least, most) if not plan.objective.repeats else (Fraction(0), most and most / plan.microbatches)
    if answer["status"] == "infeasible" and most is not None:
        found.faults.append(f"wrong: no plan, where one takes {float(most)}")
    if value is not None and value < least * (1 - slack):
        found.faults.append(f"wrong: plan {float(value)} below the optimum {float(least)}")
    if most is not None and bound is not None and bound > most * (1 + slack):
        found.faults.append(f"wrong: bound {float(bound)} above the best plan, {float(most)}")


def in_fractions(document: Any) -> Any:
    """All numbers of a document as fractions."""
    if isinstance(document, dict):
        return {key: in_fractions(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [in_fractions(value) for value in document]
    return Fraction(str(document)) if isinstance(document, float | Decimal) else document
