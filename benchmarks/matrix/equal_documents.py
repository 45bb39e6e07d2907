"""The same problem in other documents takes the same time; one with less to do, or more memory, no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from benchmarks.matrix.commands_of import SECONDS
from benchmarks.matrix.draw import Case
from benchmarks.matrix.numbers import spelled, with_numbers
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import problem_from
from pipesched.files.problem_text import problem_text
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution, Status
from solver.limits import Limits
from solver.solve import solve

Document = dict[str, Any]


class Variant(NamedTuple):
    """Another document, the factor of its time, and whether it may take less than that."""

    name: str
    document: object
    times: Fraction = Fraction(1)
    or_less: bool = False


def equal_documents(case: Case, problem: Problem, solution: Solution, random: Random, thorough: bool) -> Iterator[str]:
    """Faults of the answers to the same problem in other words; of one document, or of all."""
    if solution.status is not Status.OPTIMAL or any("rounded" in note for note in problem.notes):
        return
    assert solution.value_ticks is not None
    value = solution.value_ticks * problem.tick
    try:
        variants = [Variant("as it is written", read_yaml(problem_text(problem), "text")), *_variants(case)]
    except ValueError as why:
        yield f"wrong: a problem of a file cannot be written: {why}"
        return
    for variant in variants if thorough else [random.choice(variants)]:
        try:
            other = problem_from(variant.document)
            found = solve(other, Limits(seconds=SECONDS, workers=1))
        except BadInput as error:
            yield f"wrong: {variant.name}: refused: {error}"
            continue
        if found.status is Status.INFEASIBLE:
            yield f"wrong: {variant.name}: infeasible"
        if found.status is not Status.OPTIMAL or found.value_ticks is None or not _amounts_proved(solution, found):
            continue
        takes, expected = found.value_ticks * other.tick, value * variant.times
        if takes > expected or (takes < expected and not variant.or_less):
            least = "at most " if variant.or_less else ""
            yield f"wrong: {variant.name}: takes {float(takes)}, where it should be {least}{float(expected)}"


def _amounts_proved(*found: Solution) -> bool:
    """True if no schedule leaves more memory free than these; with other amounts, other schedules are compared."""
    return all(one.free is None or one.free.proved for one in found)


def _variants(case: Case) -> Iterator[Variant]:
    plain = case.plain
    yield Variant(
        "in other units",
        _spelled(with_numbers(_with_activations(plain), lambda x: x * 3, lambda x: x * 5)),
        Fraction(3),
    )
    if (other := _listed(plain)) is not None:
        yield Variant("one a stage", _spelled(other))
    if (other := _as_tasks(plain)) is not None:
        # A backward of two tasks lets the first bucket of gradients start after the first of them.
        parameters = plain.get("parameters") or {}
        yield Variant("as tasks", _spelled(other), or_less="buckets" in (parameters.get("reduce") or {}))
    for name, change in (
        ("with more memory", _more_memory),
        ("with a micro-batch less", _fewer),
        ("with shorter passes", _shorter),
    ):
        if (other := change(plain)) is not None:
            yield Variant(name, _spelled(other), or_less=True)


def _spelled(plain: Document) -> Document:
    found: Document = spelled(plain, "", Random(0))[0]
    return found


def _with_activations(plain: Document) -> Document:
    """Write out default amounts, so that all of them can be changed."""
    other = deepcopy(plain)
    for part in (other, *(other.get("modules") or {}).values()):
        part["memory"] = {"activation": 1} | (part.get("memory") or {})
    return other


def _listed(plain: Document) -> Document | None:
    """A list with one a stage for each number of `times`."""
    from benchmarks.matrix.exact.walks import stage_devices

    other, count = deepcopy(plain), len(stage_devices(plain))
    if plain.get("sequence_chunks") or not plain.get("times"):
        return None
    for key, value in other["times"].items():
        if isinstance(value, int | Fraction):
            other["times"][key] = [value] * count
    return other


def _as_tasks(plain: Document) -> Document | None:
    """Each pass as one task of the first stream."""
    other, times = deepcopy(plain), plain.get("times") or {}
    refused = ("sequence_chunks", "modules", "tasks", "batch")
    if any(plain.get(key) for key in refused) or {"fused", "overlapped"} & times.keys():
        return None
    passes = {key: other["times"].pop(key) for key in ("forward", "backward", "weight") if key in times}
    other["tasks"] = {key: [{"name": "all", "time": time}] for key, time in passes.items()}
    return other


def _more_memory(plain: Document) -> Document | None:
    if not (plain.get("memory") or {}).get("capacity"):
        return None
    other = deepcopy(plain)
    own = other["memory"]["capacity"]
    other["memory"]["capacity"] = [one + 1 for one in own] if isinstance(own, list) else own + 1
    return other


def _fewer(plain: Document) -> Document | None:
    fixed = ("microbatch_scale", "chains", "modules", "batch")
    # With less to keep a longer schedule may leave more memory free.
    other = plain.get("objective") in ("period", "free_memory")
    if plain["microbatches"] < 2 or any(plain.get(key) for key in fixed) or other:
        return None
    return deepcopy(plain) | {"microbatches": plain["microbatches"] - 1}


def _shorter(plain: Document) -> Document | None:
    """Half of every time."""
    if "period" in (plain.get("objective"), plain.get("then")):
        return None
    other = deepcopy(plain)
    half: Callable[[Fraction], Fraction] = lambda x: x / 2  # noqa: E731
    if plain.get("tasks"):
        other["tasks"] = {"layers": plain["tasks"].get("layers", 1)} | {
            key: with_numbers(own, half, lambda x: x, "") for key, own in plain["tasks"].items() if key != "layers"
        }
        return other
    for key in ("backward", "forward"):
        other["times"][key] = with_numbers(plain["times"][key], half, lambda x: x, "time")
    if isinstance(saves := plain["times"].get("overlapped"), dict):
        other["times"]["overlapped"] = with_numbers(saves, half, lambda x: x, "time")
    return other
