"""Bounds on the period of tiny problems against every pattern of one and of two micro-batches, searched by CP-SAT.

A pattern repeats each of its passes after a number of ticks, the same for all; its orders, modes and the number of
micro-batches under way are open. The model is written from the definitions alone. A file with parameters, whose work
once an iteration no pattern repeats, must be refused with the objective period, and so must the problem itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil
from random import Random
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from, with_objective
from pipesched.problem.objectives.iteration import ITERATION
from pipesched.problem.objectives.period import PERIOD
from pipesched.results.certificate import Certificate
from solver.cyclic.period_bounds import period_certificates
from solver.limits import Limits
from solver.solve import solve

# Cycles from the first forward of a micro-batch to the end of its last pass, at most.
_CYCLES = 6
_MOST_WORK = 0.05
_PLACED: Sequence[tuple[int, Sequence[int]]] = (
    (1, (0,)), (1, (0, 0)), (2, (0, 1)), (2, (0, 1)), (2, (0, 1, 1, 0)), (2, (0, 1, 0)), (3, (0, 1, 2)),
)  # fmt: skip


def drawn(number: int) -> dict[str, Any]:
    """Return the problem document of this number: whole numbers, by chance with W, full backwards, blocks, memory."""
    random = Random(f"{number} period")
    devices, placement = random.choice(_PLACED)
    stages = len(placement)

    def row(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(stages)]

    times: dict[str, Any] = {"forward": row(1, 4), "backward": row(1, 5), "transfer": random.choice((0, 0, 1, 3, 8))}
    whole = list(times["backward"])
    if random.random() < 0.6:
        times["weight"] = row(0, 3)
        whole = [b + w for b, w in zip(whole, times["weight"], strict=True)]
        if random.random() < 0.5:
            whole = times["fused"] = [
                random.randint(b, b + w) for b, w in zip(times["backward"], times["weight"], strict=True)
            ]
    if random.random() < 0.3 and stages == devices:
        times["overlapped"] = [random.randint(max(f, b), f + b) for f, b in zip(times["forward"], whole, strict=True)]
    found: dict[str, Any] = {"devices": devices, "microbatches": 4, "placement": list(placement), "times": times}
    if random.random() < 0.8:
        activation = row(1, 3)
        memory: dict[str, Any] = {"activation": activation}
        if "weight" in times and random.random() < 0.6:
            memory["freed_by_backward"] = [random.choice((0, a // 2, a, -1)) for a in activation]
        # On each device for one activation of each of its stages, and what B takes, and a little more.
        own = [sum(activation[s] + 1 for s, where in enumerate(placement) if where == d) for d in range(devices)]
        memory["capacity"] = [one + random.choice((0, 0, 1, 3)) for one in own]
        found["memory"] = memory
    return found | {"objective": "period"}


class _Holding(NamedTuple):
    """Memory that a device holds from `since` to `until` in every cycle, if `runs`: an amount of each copy."""

    device: int
    since: Any
    until: Any
    amount: int
    runs: Any


class _Pattern:
    """The model of a pattern of so many micro-batches that repeats after so many ticks."""

    def __init__(self, document: Mapping[str, Any], microbatches: int, ticks: int) -> None:
        self._document, self._ticks = document, ticks
        self.cp = cp_model.CpModel()
        self._true = self.cp.new_constant(1)
        self._intervals: dict[int, list[Any]] = {}
        self._holdings = list[_Holding]()
        self._cycles = dict[int, tuple[Any, Any]]()
        self._placement: Sequence[int] = document["placement"]
        # Of a forward or full backward: start, end, whether it runs in no block, and whether it runs at all.
        self._alone = dict[tuple[str, int, int], tuple[Any, Any, Any, Any]]()
        for m in range(microbatches):
            self._microbatch(m)
        self._blocks()
        for own in self._intervals.values():
            self.cp.add_no_overlap(own)
        self._memory()

    def _row(self, key: str) -> Sequence[int] | None:
        found: Sequence[int] | None = self._document["times"].get(key)
        return found

    def _instant(self) -> Any:
        return self.cp.new_int_var(0, _CYCLES * self._ticks, "")

    def _cycle_and_tick(self, instant: Any) -> tuple[Any, Any]:
        """Return (cycle, tick of the cycle) of an instant."""
        if instant.index not in self._cycles:
            cycle, tick = self.cp.new_int_var(0, _CYCLES, ""), self.cp.new_int_var(0, self._ticks - 1, "")
            self.cp.add(instant == self._ticks * cycle + tick)
            self._cycles[instant.index] = cycle, tick
        return self._cycles[instant.index]

    def _run(self, device: int, length: int, runs: Any) -> tuple[Any, Any]:
        """Return start and end of a pass that occupies its device, once in each cycle."""
        start, end = self._instant(), self._instant()
        self.cp.add(end == start + length)
        _, tick = self._cycle_and_tick(start)
        for shift in (0, self._ticks):
            one = self.cp.new_optional_fixed_size_interval_var(tick + shift, length, runs, "")
            self._intervals.setdefault(device, []).append(one)
        return start, end

    def _microbatch(self, m: int) -> None:
        cp, weight, stages = self.cp, self._row("weight"), range(len(self._placement))
        forward, backward = self._row("forward"), self._row("backward")
        assert forward is not None and backward is not None
        fused = self._row("fused") or [b + w for b, w in zip(backward, weight or [0] * len(backward), strict=True)]
        f_of, b_of = dict[int, tuple[Any, Any]](), dict[int, tuple[Any, Any]]()
        for s in stages:
            device = self._placement[s]
            split = cp.new_bool_var("") if weight is not None else cp.new_constant(0)
            alone_f, alone_b = cp.new_bool_var(""), cp.new_bool_var("")
            cp.add_implication(alone_b, ~split)
            f_of[s], whole = (self._instant(), self._instant()), (self._instant(), self._instant())
            for instants, length, runs in ((f_of[s], forward[s], alone_f), (whole, fused[s], alone_b)):
                own = self._run(device, length, runs)
                for one, other in zip(instants, own, strict=True):
                    cp.add(one == other).only_enforce_if(runs)
            self._alone["F", s, m] = (*f_of[s], alone_f, self._true)
            self._alone["BW", s, m] = (*whole, alone_b, ~split)
            begin, end = self._instant(), self._instant()
            for one, other in zip((begin, end), whole, strict=True):
                cp.add(one == other).only_enforce_if(~split)
            b_of[s] = begin, end
            self._hold(s, f_of[s], (begin, end), split, whole[1])
        lag = self._document["times"]["transfer"]
        for s in stages:
            cp.add(b_of[s][0] >= f_of[s][1])
            if s + 1 in stages:
                sent = lag if self._placement[s] != self._placement[s + 1] else 0
                cp.add(f_of[s + 1][0] >= f_of[s][1] + sent)
                cp.add(b_of[s][0] >= b_of[s + 1][1] + sent)

    def _hold(self, s: int, forward: Any, back: Any, split: Any, whole_end: Any) -> None:
        """Enter what a stage holds of a micro-batch, and its split backward where there is one."""
        cp, device, memory = self.cp, self._placement[s], self._document.get("memory", {})
        activation = memory.get("activation", [1] * len(self._placement))[s]
        freed = memory.get("freed_by_backward", [0] * len(self._placement))[s]
        self._holdings.append(_Holding(device, forward[0], whole_end, activation, ~split))
        weight, backward = self._row("weight"), self._row("backward")
        if weight is None or backward is None:
            return
        b, w = self._run(device, backward[s], split), self._run(device, weight[s], split)
        cp.add(w[0] >= b[1]).only_enforce_if(split)
        for one, other in zip(back, b, strict=True):
            cp.add(one == other).only_enforce_if(split)
        self._holdings.append(_Holding(device, forward[0], b[1], max(freed, 0), split))
        self._holdings.append(_Holding(device, forward[0], w[1], activation - max(freed, 0), split))
        self._holdings.append(_Holding(device, b[0], w[1], max(-freed, 0), split))

    def _blocks(self) -> None:
        """Pairs of a forward and a full backward of a device that run as one block, of any two cycles."""
        cp, times = self.cp, self._row("overlapped")
        within: dict[tuple[str, int, int], list[Any]] = {key: [] for key in self._alone}
        if times is not None:
            fs, bs = ([key for key in self._alone if key[0] == kind] for kind in ("F", "BW"))
            for f, b in product(fs, bs):
                if f[1] == b[1]:  # a device has one stage
                    together = cp.new_bool_var("")
                    start, end = self._run(self._placement[f[1]], times[f[1]], together)
                    for key in (f, b):
                        for one, other in zip(self._alone[key][:2], (start, end), strict=True):
                            a, c = self._cycle_and_tick(one), self._cycle_and_tick(other)
                            cp.add(a[1] == c[1]).only_enforce_if(together)
                        length = self._alone[key][1] - self._alone[key][0]
                        cp.add(length == times[f[1]]).only_enforce_if(together)
                        within[key].append(together)
        for key, (_, _, alone, runs) in self._alone.items():
            cp.add(sum([alone, *within[key]]) == runs)

    def _memory(self) -> None:
        capacity = self._document.get("memory", {}).get("capacity")
        if capacity is None:
            return
        cp, most = self.cp, _CYCLES + 1
        for taken in self._holdings:
            levels = list[Any]()
            _, now = self._cycle_and_tick(taken.since)
            for holding in self._holdings:
                if holding.device != taken.device or not holding.amount:
                    continue
                (first, since), (last, until) = self._cycle_and_tick(holding.since), self._cycle_and_tick(holding.until)
                begun, over = cp.new_bool_var(""), cp.new_bool_var("")
                for early, literal in ((since, begun), (until, over)):
                    cp.add(early <= now).only_enforce_if(literal)
                    cp.add(early > now).only_enforce_if(~literal)
                copies = cp.new_int_var(0, most, "")
                cp.add(copies == last - first + begun - over).only_enforce_if(holding.runs)
                cp.add(copies == 0).only_enforce_if(~holding.runs)
                levels.append(holding.amount * copies)
            cp.add(sum(levels) <= capacity[taken.device]).only_enforce_if(taken.runs)


def repeats_within(document: Mapping[str, Any], microbatches: int, ticks: int) -> bool | None:
    """Return True if some pattern of so many micro-batches repeats after so many ticks; None if that is not known."""
    if ticks <= 0:
        return False
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _MOST_WORK
    status = solver.solve(_Pattern(document, microbatches, ticks).cp)
    known = {cp_model.INFEASIBLE: False, cp_model.OPTIMAL: True, cp_model.FEASIBLE: True}
    return known.get(status)


def compare(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Hold the strongest bound of a drawn problem to all patterns; AssertionError where it claims too much."""
    if number % 25 == 0:
        _parameters_are_refused(Random(number))
        return ("all", "parameters"), ("problems", "refused")
    document = drawn(number)
    try:
        problem = problem_from(document)
    except BadInput:
        return ("all",), ("refused file",)
    found, seen, tick = period_certificates(problem), ["problems"], Fraction(problem.tick)
    for certificate in found:
        one = Certificate(
            certificate.kind, certificate.value, certificate.text, certificate.device, certificate.evidence
        )
        finding = check_bound(problem, one)
        assert finding.verdict is Verdict.VERIFIED, f"check of {certificate.kind}: {finding.text}"
    # A pattern can be stretched to any longer cycle: where none is shorter the strongest, none is shorter the others.
    strongest = [one for one in found if one.value == found[0].value]
    value = found[0].value * tick
    for microbatches in (1, 2):
        shorter = ceil(value * microbatches) - 1
        repeats = repeats_within(document, microbatches, shorter)
        assert not repeats, (
            f"{found[0].kind}: {value} a micro-batch, where {microbatches} repeat after {shorter} ({document})"
        )
        seen += ["not known"] if repeats is None and "not known" not in seen else []
    equal = value.denominator == 1 and repeats_within(document, 1, int(value))
    return ("all", *{one.kind for one in strongest}), (*seen, *(["equal"] if equal else []))


def _parameters_are_refused(random: Random) -> None:
    """Assert that work for parameters has no period: in a file, by an option, and as a problem made in Python."""
    document: dict[str, Any] = {"devices": 2, "microbatches": 3, "streams": ["compute", "dp"]}
    document["times"] = {"forward": random.randint(1, 3), "backward": random.randint(1, 4)}
    keep = random.choice(("free", "always", "never", {"window": 1}))
    parts: dict[str, Any] = {
        "gather": {"time": random.randint(0, 2), "on": "dp", "memory": 1, "keep": keep},
        "reduce": {"time": random.randint(0, 2), "on": "dp", "every": random.choice(("iteration", "microbatch"))},
        "step": {"time": random.randint(0, 2)},
    }
    chosen = random.sample(sorted(parts), random.randint(1, 3))
    document["parameters"] = {key: parts[key] for key in chosen}
    problem = problem_from(document | {"objective": ITERATION.name})
    for refuse in (
        lambda: problem_from(document | {"objective": PERIOD.name}),
        lambda: with_objective(problem, PERIOD),
        lambda: solve(replace(problem, objective=PERIOD), Limits(seconds=1, workers=1)),
    ):
        try:
            refuse()
        except BadInput as refused:
            assert "found period with parameters; allowed: iteration" in str(refused), str(refused)
        else:
            raise AssertionError(f"a period of {' + '.join(chosen)} is not refused")
