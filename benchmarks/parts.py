"""Sequence chunks, collectives, lookups, modules, lost workers: published schedules against what is found and proved.

python -m benchmarks.parts --units 20 --write docs/results/parts.md

The instances are public questions with numbers; what is known of each is its optimum, or what must be reached.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from benchmarks.reporting.suite import Case, Suite
from heuristics.catalogue import schedule_named
from pipesched.files.problem_file import problem_from, read_document
from pipesched.problem.passes import UNSHARD
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate

_EXAMPLES = Path(__file__).parents[1] / "examples"
# Orders that gather once a group of micro-batches and stage, or as they come to a stage.
_BY_GROUPS = "looped-bfs:2", "looped-bfs:4", "looped-bfs", "interleaved-1f1b", "interleaved-1f1b:4"


def cases(_: int) -> Iterator[Case]:
    """The cases of each part in turn."""
    pieces = _example("sequence-chunks")
    for microbatches, capacity, asked in ((2, 2.8, "213"), (2, 6.4, "195"), (4, 2.8, "381"), (4, 6.4, "<= 327")):
        keys = {"microbatches": microbatches, "memory.capacity": capacity}
        name = f"{microbatches} sequences of 4 pieces, memory {capacity:g}"
        yield _case(name, asked, _with(pieces, keys), "seq1f1b", "slimpipe", "terapipe")
    whole = {"sequence_chunks": 1, "times": {"forward": 22, "backward": 44}, "memory.activation": 1.6}
    yield _case(
        "2 whole sequences, memory 6.4", "330", _with(pieces, {**whole, "memory.capacity": 6.4}), "1f1b", "gpipe"
    )
    gathered = _example("gathered-weights")
    for most, asked in ((4, "50"), (10, "34"), (96, "34")):
        keys = {"parameters.gather.most": most}
        yield _case(f"gathered weights, {most} gatherings at most", asked, _with(gathered, keys), *_BY_GROUPS)
    window = {"parameters.gather.keep": {"window": 1}}
    yield _case("gathered weights, a stage of a device at once", "", _with(gathered, window), *_BY_GROUPS)
    roomy = {"memory.capacity": 10, "parameters.gather.most": 32}
    yield _case("gathered weights, memory for both stages and 8 activations", "34", _with(gathered, roomy), *_BY_GROUPS)
    orders = "interleaved-1f1b", "interleaved-zb", "kimi-k2"
    yield _case("reductions and steps", "210", _example("reduce-and-step"), *orders)
    for capacity, asked in ((2, "306"), (2.5, "302"), (3, "300")):
        own = _with(_example("lookups"), {"memory.capacity": capacity})
        yield _case(f"lookups, memory {capacity:g}", asked, own, "1f1b", "gpipe")
    lost = _example("lost-workers")
    yield _case("lost workers: one of 16", "989, bound >= 981", lost, "recycle")
    several = {"pipelines.lost": [[0, 0], [1, 0], [1, 1], [2, 2], [3, 3]], "pipelines.slow": {"0.2": 2}}
    yield _case("lost workers: five of 16, one slow", "1962", _with(lost, several), "recycle")
    encoder = {"first-stage": "414", "own-device": "442", "in-the-bubbles": "380", "replicated": "373"}
    for name, asked in encoder.items():
        yield _case(f"vision encoder, {name}", asked, _example(f"modules/{name}"))
    vocabulary, head = _example("shared-vocabulary"), "modules.head"
    yield _case("vocabulary of a million words, 2 barriers", "", vocabulary, "vocab-1f1b")
    times = {"forward": 4.3325, "backward": 0, "weight": 0.3825}  # a forward has the gradient of the input, too
    one = _with(vocabulary, {f"{head}.barriers": 1, f"{head}.times": times})
    yield _case("vocabulary of a million words, 1 barrier", "", one, "vocab-1f1b")


def _case(name: str, known: str, document: Mapping[str, Any], *orders: str) -> Case:
    problem = problem_from({**document, "name": name})
    return Case(problem, "parts", known, orders=", ".join(_order(problem, order) for order in orders))


def _order(problem: Problem, name: str) -> str:
    """Time of a published order, how often it gathers, and its memory where there is less."""
    found = simulate(problem, schedule_named(name).order(problem))
    figures, gathers = measure(found), sum(p.kind is UNSHARD for p in found.schedule.passes())
    text = f"{figures.makespan:g} ({name}"
    text += f", {gathers} gatherings" * bool(gathers)
    lacking = any(
        room is not None and peak > room for peak, room in zip(figures.peak_quanta, problem.room, strict=True)
    )
    text += f", {max(figures.peak_memory):g} {problem.memory_unit}" * lacking
    return text + ")"


def _example(name: str) -> Mapping[str, Any]:
    document = read_document(_EXAMPLES / f"{name}.yaml")
    assert isinstance(document, dict)
    return document


def _with(document: Mapping[str, Any], keys: Mapping[str, object]) -> Mapping[str, Any]:
    """The document with these values at these paths."""
    found: dict[str, Any] = deepcopy(dict(document))
    for path, value in keys.items():
        *sections, key = path.split(".")
        mapping = found
        for section in sections:
            mapping = mapping[section]
        mapping[key] = value
    return found


SUITE = Suite("parts", __doc__, {"parts": cases}, every=True)

if __name__ == "__main__":
    sys.exit(SUITE.main())
