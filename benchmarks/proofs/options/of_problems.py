"""Commands on a tiny problem file with options, each answer against the optimum of the document that they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from benchmarks.proofs.options import meant
from benchmarks.proofs.options.by_hand import value_of_schedule
from benchmarks.proofs.options.claim import cells_hold, exact, holds, nothing_fits, number, same
from benchmarks.proofs.options.drawn import Asked, NotComparedError, answer_of
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.files.problems.document import problem_document
from pipesched.problem.problem import Problem
from pipesched.sweeps.cells import read_sweep
from runtime.exporters.restrictions import RESTRICTIONS
from solver.analysis.perturbations import changes

# What an option set was seen to say: "compared", or what came of it.
Seen = Sequence[str]
_TIMES = ("makespan", "span", "iteration")
# Less memory by so much than a level below which nothing fits.
_LESS = 1 - Fraction(1, 10**6)
_STARTS = ("gpipe", "1f1b", "zb-h1", "interleaved-1f1b")


def _time_of(asked: Asked) -> str:
    """Return the objective of a file, of those whose optimum is known; raise `NotComparedError` for others."""
    found = asked.plain.get("objective", "makespan")
    if found not in _TIMES:
        raise NotComparedError(f"objective {found}")
    return str(found)


def objective(asked: Asked) -> Seen:
    """`solve --objective`."""
    name = asked.random.choice((*_TIMES, "period", "free_memory"))
    plain = meant.with_objective(asked.plain, name)
    answer = asked.answer("solve", "--objective", name)
    if name == "period":
        # One iteration after the other is a schedule without end.
        best = exact(meant.with_objective(asked.plain, "makespan"))
        count = sum(chain["microbatches"] for chain in asked.plain.get("chains", ())) or asked.plain["microbatches"]
        if best is not None and best.most is not None and "pipelines" not in asked.plain:
            bound = number(answer["lower_bound"])
            assert bound is None or bound <= best.most / count * (1 + Fraction(1, 10**9)), (
                f"period: bound {float(bound)}, {float(best.most / count)} is possible"
            )
            return (name, "compared")
        return (name,)
    if name == "free_memory":
        left = answer.get("free_memory")
        if left is None:
            return (name,)
        amount, bound = Fraction(left["value"]), Fraction(left["upper_bound"])
        more = exact(plain, reserved=bound + Fraction(1, 1000))
        assert more is None or more.most is None, f"free_memory: more than {float(bound)} can be left free"
        return (name, *holds(name, answer, exact(plain, reserved=amount)))
    return (name, *holds(f"solve --objective {name}", answer, exact(plain)))


def gap(asked: Asked) -> Seen:
    """`solve --gap --seed`, and files written, which `check` and `validate` accept."""
    _time_of(asked)
    out, seen = asked.folder / "out", list[str]()
    share = asked.random.choice(("0", "5%", "0.5"))
    answer = asked.answer("solve", "--gap", share, "--seed", str(asked.random.randrange(99)), "-o", str(out))
    if (out / "schedule.json").exists():
        for command in ("check", "validate"):
            found = answer_of(command, str(out / "schedule.json"), "--json")
            assert found["code"] == 0, f"{command} refuses our own file"
        seen += same("solve --gap", answer["value"], value_of_schedule(out / "schedule.json"))
    return [*seen, *holds("solve --gap", answer, exact(asked.plain))]


def explain(asked: Asked) -> Seen:
    """`solve --explain`: bounds without memory and transfers, and every change against its own optimum."""
    _time_of(asked)
    answer = asked.answer("solve", "--explain", "--explain-time", "2")
    best, it = exact(asked.plain), answer.get("explanation")
    seen = [*holds("solve --explain", answer, best)]
    if it is None:
        return seen
    holds("as it is", it["as_it_is"], best)
    roomy, direct = meant.with_capacities(asked.plain, None), meant.without_transfers(asked.plain)
    if "offload" not in asked.plain.get("memory", {}) and "recompute" not in asked.plain.get("memory", {}):
        holds("without memory", {"lower_bound": it["bound_without_memory"]}, exact(roomy))
    if direct is not None:
        holds("without transfers", {"lower_bound": it["bound_without_transfers"]}, exact(direct))
    problem = read_problem(asked.path)
    known = {one.text: one.problem for one in changes(problem, it["device"], it["busiest_device"])}
    rows = asked.random.sample(it["changes"], min(4, len(it["changes"])))
    for row in rows:
        if row["text"] not in known:
            continue  # the search may have chosen other ticks, in which a tenth is written in another way
        changed = _document(known[row["text"]])
        if changed is None:
            continue
        after = exact(changed)
        claim = row | ({"status": "infeasible"} if row.get("reason") else {})
        seen += holds(f"--explain: {row['text']}", claim, after)
        _gain(row, best, after)
    return seen


def _document(problem: Problem) -> Mapping[str, Any] | None:
    """Return the document of a problem; None where no document says it, such as a copy of a module that is faster."""
    document = problem_document(problem)
    same = replace(problem_from(document), name=problem.name) == problem
    return document if same else None


def _gain(row: Mapping[str, Any], before: Any, after: Any) -> None:
    """Assert that what a change gains lies within what is claimed of it."""
    least, most = number(row["gain_at_least"]), number(row["gain_at_most"])
    if least is None or most is None or before is None or after is None or None in (*before, *after):
        return
    small = Fraction(1, 10**6)
    assert least <= before.most - after.least + small, f"{row['text']}: gains {float(least)} at least"
    assert most >= before.least - after.most - small, f"{row['text']}: gains {float(most)} at most"


def less_memory(asked: Asked) -> Seen:
    """`solve --then-memory`, `--memory-within`."""
    _time_of(asked)
    words = asked.random.choice((("--then-memory",), ("--memory-within", "10%"), ("--memory-within", "1")))
    answer = asked.answer("solve", *words)
    found = answer.get("least_memory")
    seen = [*holds(f"solve {words[0]}", answer | {"status": None}, exact(asked.plain))]
    if found is None:
        return seen
    allowed = Fraction(found["allowed_value"]) * (1 + Fraction(1, 10**9))
    enough = exact(_at_level(asked, found["value"], found["by_share"], 1))
    if enough is not None:
        assert enough.least is not None, f"{words[0]}: nothing fits the memory found"
        assert enough.least <= allowed, f"{words[0]}: {float(enough.least)} with the memory found, {allowed} allowed"
    if found["lower_bound"] > 0:
        less = exact(_at_level(asked, found["lower_bound"], found["by_share"], _LESS))
        beyond = less is None or less.most is None or less.most > Fraction(found["allowed_value"]) * _LESS
        assert beyond, f"{words[0]}: less than {found['lower_bound']} is enough, for {found['allowed_value']}"
        seen.append("compared")
    return seen


def _at_level(asked: Asked, level: float, by_share: bool, times: Fraction | int) -> meant.Document:
    """Return the document with room for a level of memory on every device, besides what is static, within its own."""
    problem = read_problem(asked.path)
    rooms = [None if own is None else own * problem.resolution for own in problem.room]
    whole = Fraction(level).limit_denominator(10**6) * times
    room = [whole * (own if by_share and own is not None else 1) for own in rooms]
    static = [own * problem.resolution for own in problem.static]
    return meant.with_capacities(asked.plain, [a + b for a, b in zip(room, static, strict=True)])


def frontier(asked: Asked) -> Seen:
    """`frontier`: every point, the bounds between them, and the least memory that fits."""
    _time_of(asked)
    answer = asked.answer("frontier", "--points", str(asked.random.choice((2, 3, 5))), limits=("--time-limit", "2"))
    seen = list[str]()
    for point in answer["points"]:
        best = exact(_at_level(asked, point["memory"], answer["by_share"], 1))
        seen += holds(f"frontier at {point['memory']}", point, best)
    for point in answer["bounds"][:6]:
        best = exact(_at_level(asked, point["memory"], answer["by_share"], 1))
        holds(f"frontier: bound at {point['memory']}", point, best)
    if answer.get("lower_bound") is not None:
        holds("frontier: any memory", {"lower_bound": answer["lower_bound"]}, exact(_ample(asked)))
    # The exact model has no order of passes that begin and end at one instant.
    if answer["least_memory"] > 0 and "zeros" not in asked.features:
        nothing_fits("least memory", _at_level(asked, answer["least_memory"], answer["by_share"], _LESS))
    return seen


def _ample(asked: Asked) -> meant.Document:
    """Return the document with room for all."""
    return meant.with_capacities(asked.plain, [Fraction(10**6)] * asked.plain["devices"])


def runtime(asked: Asked) -> Seen:
    """`solve --for`: value and bound are those of the problem that the runtime leaves."""
    _time_of(asked)
    name = asked.random.choice(sorted(RESTRICTIONS))
    stages = read_problem(asked.path).placement.stages
    answer = asked.answer("solve", "--for", name)
    own, best = meant.for_runtime(asked.plain, name, stages), exact(asked.plain)
    if best is not None and best.least is not None and answer["value"] is not None:
        assert answer["value"] >= best.least * _LESS, f"--for {name}: {answer['value']} below the optimum {best.least}"
    return (name, *(() if own is None else holds(f"solve --for {name}", answer, exact(own))))


def start(asked: Asked) -> Seen:
    """`solve --start`: never worse than the schedule given."""
    _time_of(asked)
    file, name = str(asked.folder / "start.json"), asked.random.choice(_STARTS)
    found = answer_of("simulate", asked.path, "--schedule", name, "--json", "-o", file)
    key = "span" if asked.plain.get("objective") == "span" or asked.plain.get("overlap_next") else "makespan"
    answer = asked.answer("solve", "--start", file, limits=("--time-limit", asked.random.choice(("0.01", "1"))))
    value = answer["value"]
    if answer["status"] != "infeasible":
        assert value is not None, "--start: no schedule, where one is given"
        assert value <= found[key] * (1 + 1e-9), f"--start: {value}, worse than {found[key]} of {name}"
    return holds("solve --start", answer, exact(asked.plain))


def robust(asked: Asked) -> Seen:
    """`solve --robust`."""
    _time_of(asked)
    answer = asked.answer("solve", "--robust", "5%")
    return holds("solve --robust", answer | {"status": None}, exact(asked.plain))


def compare(asked: Asked) -> Seen:
    """`compare --schedules --with --no-optimal --objective`: what fits is no better than the optimum, nor the bound
    above it."""
    name, plain = _time_of(asked), asked.plain
    words = list[str]()
    if asked.random.random() < 0.5:
        words += ["--schedules", ",".join(asked.random.sample(("1f1b", "gpipe", "zb-h1", "zbv", "zb"), 2))]
    if asked.random.random() < 0.5:
        words.append("--no-optimal")
    if asked.random.random() < 0.3 and name != "iteration":
        name = asked.random.choice(("makespan", "span"))
        words, plain = [*words, "--objective", name], meant.with_objective(plain, name)
    if asked.random.random() < 0.5:
        out = asked.folder / "out"
        asked.answer("solve", "-o", str(out))
        if (out / "schedule.json").exists():
            words += ["--with", str(out / "schedule.json")]
    answer, best = asked.answer("compare", *words), exact(plain)
    seen = [*holds(f"compare {' '.join(words)}", {"lower_bound": answer["lower_bound"]}, best)]
    for row in answer["rows"]:
        if row["fits"] and best is not None:
            assert best.least is not None, f"{row['schedule']} fits, where nothing does"
            assert row["value"] >= best.least * _LESS, f"{row['schedule']}: {row['value']} below {best.least}"
    if "--with" in words:
        assert any(row["schedule"] == "schedule.json" and row["fits"] for row in answer["rows"]), "--with: does not fit"
    return seen


def sweep(asked: Asked) -> Seen:
    """`sweep --set --same-model`: every cell against the optimum of its own document."""
    _time_of(asked)
    random, store = asked.random, str(asked.folder / "cells.sqlite")
    axes = {
        "microbatches": "1,2",
        "memory.capacity": "2,3",
        "times.transfer": "0,1",
        "devices": "1,2",
        "placement": "linear,v-shape",
        "objective": "makespan,span",
        "memory.static": "0,1",
        "memory.freed_by_backward": "0,0.5",
    }
    chosen = random.sample(sorted(axes), random.choice((1, 1, 2)))
    words = [word for one in chosen for word in ("--set", f"{one}={axes[one]}")]
    same = random.random() < 0.4
    words += ["--same-model"] if same else []
    answer = asked.answer("sweep", *words, "--store", store, "--jobs", "1")
    again = asked.answer("sweep", *words, "--store", store, "--jobs", "1")
    assert [c["value"] for c in again["cells"]] == [c["value"] for c in answer["cells"]], (
        "sweep: other values when read"
    )
    own = read_sweep(asked.path, words[1 : 2 * len(chosen) : 2], same)
    return cells_hold(words, own.cells, answer["cells"], lambda cell: exact(cell.document))


OPTIONS: Mapping[str, Callable[[Asked], Seen]] = {
    "solve --objective": objective,
    "solve --gap": gap,
    "solve --explain": explain,
    "solve --memory-within": less_memory,
    "solve --for": runtime,
    "solve --start": start,
    "solve --robust": robust,
    "frontier": frontier,
    "compare": compare,
    "sweep": sweep,
}
