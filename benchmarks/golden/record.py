"""All that is stored of a file: short values as they are, long ones as a digest."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

from benchmarks.golden.cases import File
from heuristics.catalogue import HEURISTICS
from pipesched.checking.check import check_bound
from pipesched.errors import BadInput, DoesNotApply
from pipesched.files.plan_answers.problem_document import plan_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.objective import Objective
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence_document import evidence_document
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from plots.html.document import document as chart
from runtime.exporters.catalogue import EXPORTERS
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import sequential
from solver.cyclic.period_bounds import period_certificates
from solver.limits import Limits
from solver.solve import solve
from tests.support.optima import without_later_fields
from tests.support.plan_brute_force import partitions

# Work of CP-SAT, in its own units, of a search with one worker; and the forwards of a schedule that is written in every
# format, at most.
UNITS, MOST_FORWARDS = 0.2, 130
# Where multipliers of a linear program prove a value, it may differ between machines.
_BY_MULTIPLIERS = "load and memory over modes"
Record = dict[str, Any]


def record(file: File) -> Record:
    """The parts by name; what is refused is its lines."""
    try:
        if file.kind == "plan":
            return _of_plan(file)
        problem = problem_from(file.document, file.name)
    except BadInput as error:
        return {"refused": list(error.mistakes)}
    return {
        "document": _document(problem),
        "notes": list(problem.notes),
        "network": digest(problem.network),
        "infeasible": why_infeasible(problem),
        "bounds": _bounds(problem),
        **_schedules(problem),
        **({"search": _search(problem)} if file.drawn else {}),
    }


def digest(value: object) -> str:
    """Twelve letters that no other value has: of fields by name, of what has no order sorted."""
    return sha256(json.dumps(_plain(value), sort_keys=True).encode()).hexdigest()[:12]


def _plain(value: object) -> Any:
    if isinstance(value, Objective) and value.leaves is None:
        value = value.name
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        # A new field with a default changes no digest of what does not use it.
        given = [
            (one.name, getattr(value, one.name)) for one in fields(value) if getattr(value, one.name) != _default(one)
        ]
        return {name: _plain(own) for name, own in given}
    if isinstance(value, Mapping):
        return sorted((json.dumps(_plain(key)), _plain(one)) for key, one in value.items())
    if isinstance(value, set | frozenset):
        return sorted((_plain(one) for one in value), key=json.dumps)
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in without_later_fields(value)]
    return value if isinstance(value, int | str | bool | None) else str(value)


def _default(one: Field[Any]) -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _is_small(problem: Problem) -> bool:
    return sum(map(len, problem.microbatches_of)) <= MOST_FORWARDS


def _document(problem: Problem) -> str:
    """The problem as a file of its own; or why none has it."""
    try:
        return digest(problem_document(problem))
    except (BadInput, ValueError) as error:
        return str(error)


def _bounds(problem: Problem) -> list[str]:
    """Every certificate that is no part of a search: kind, value in ticks, the verdict of the check, its argument."""
    if problem.objective.repeats:
        own = [] if problem.walks.queues or problem.walks.scale else period_certificates(problem)
        found: Collection[Certificate] = [
            Certificate(one.kind, one.value, one.text, one.device, one.evidence)
            for one in own
            if one.kind != _BY_MULTIPLIERS
        ]
    else:
        found = certificates(problem, problem.objective)
    return sorted(_bound(problem, one) for one in found)


def _bound(problem: Problem, one: Certificate) -> str:
    where = "" if one.device is None else f" on {one.device}"
    evidence = None if one.evidence is None else evidence_document(one.evidence)
    verdict = check_bound(problem, one)
    return f"{one.kind}{where}: {one.value_ticks} {verdict.verdict.value} {digest([one.text, verdict.text, evidence])}"


def _schedules(problem: Problem) -> Record:
    """Published schedules with value and peaks, and the first of all that keep every rule as files and charts."""
    found, refused, valid = {}, {}, None
    for heuristic in HEURISTICS:
        if heuristic.searched:
            continue
        try:
            timeline = simulate(problem, heuristic.order(problem))
        except DoesNotApply as error:
            refused[heuristic.name] = str(error)
            continue
        broken = [str(one) for one in validate(timeline)]
        found[heuristic.name] = f"{_figures(timeline)} {digest(broken) if broken else 'valid'}"
        valid = valid if broken else valid or timeline
    one = valid or simulate(problem, sequential(problem))
    return {
        "published": found,
        "does not apply": digest(refused),
        "one by one": _figures(one),
        **(_files(one) if _is_small(problem) else {}),
    }


def _figures(timeline: Timeline) -> str:
    metrics = measure(timeline)
    return f"{metrics.makespan_ticks} {metrics.span_ticks} {' '.join(map(str, metrics.peak_quanta))}"


def _files(timeline: Timeline) -> Record:
    """The schedule in the formats of all runtimes, or why not; as a file, and as a chart."""
    found = {}
    for exporter in EXPORTERS:
        try:
            files = exporter.export(timeline)
            found[exporter.name] = digest({suffix: _without_words(suffix, text) for suffix, text in files.items()})[:6]
        except BadInput as error:
            found[exporter.name] = f"no {digest(str(error))[:6]}"
    try:
        file = digest(to_text(ScheduleFile(timeline)))
    except (BadInput, ValueError) as error:
        file = str(error)
    return {"formats": found, "file": file, "chart": digest(chart(timeline))}


def _without_words(suffix: str, text: str) -> str:
    """The text of a file; of a program without comments and docstrings, which are ours."""
    if not suffix.endswith(".py"):
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _search(problem: Problem) -> str:
    """Status, bound and value in ticks of the problem, the argument, and the notes."""
    try:
        found = solve(problem, Limits(seconds=600, workers=1, deterministic=UNITS))
    except BadInput as error:
        return str(error)
    kind = found.certificate.kind if found.certificate else "none"
    value = None if found.value is None else f"{found.value:.9g}"
    return f"{found.status.value}: {found.lower_bound:.9g} {value} {kind} {digest([found.reason, found.notes])}"


def _of_plan(file: File) -> Record:
    """The notes of a plan file, what it and its variants say as exact documents, and of tiny ones the problem of the
    first partition of each choice."""
    plan = plan_problem_from(file.document, file.name)
    variants, found = plan.variants, []
    for one in variants.values() or (plan,) if file.drawn else ():
        for choice in one.choices:
            try:
                first = next(iter(partitions(one, choice)), None)
                found.append("none" if first is None else _document(one.problem(choice, first)))
            except BadInput as error:
                found.append(str(error))
    documents = {name: plan_document(one) for name, one in {"": plan, **variants}.items()}
    return {
        "notes": list(plan.notes),
        "choices": len(plan.choices),
        "variants": list(variants),
        "problems": digest(found),
        "plan": digest([list(documents.items()), plan.assumptions, plan.step, plan.frozen, plan.adapter_rank]),
    }
