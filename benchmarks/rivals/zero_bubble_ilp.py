"""The integer program of the Zero Bubble paper, solved with CBC: the baseline for the engine's proofs.

Formulation of arXiv 2401.10241, appendix G: the end of every pass, a binary for every two passes of a device whose
order is open, big-M rows between them, memory as linear rows, and the longest time a device takes as objective. CBC is
what the paper's release calls; like there, M is the time that all passes take one after another, each device's time
also counts the work ordered after a pass, and the greedy's schedule is the warm start. Written from the formulas.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import pulp

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.problem.mode_gains import fused_is_dominated
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.validation.validator import validate
from solver.construction.timing import best_times

# The order of two passes of a device: known, a binary, or one less a binary.
Before: TypeAlias = int | pulp.LpVariable | pulp.LpAffineExpression


class Ilp:
    """The program of one problem; `lp` is PuLP's, `longest` its objective.

    Every backward runs split, as in the paper. ValueError where a fused backward may be better, where a pass is more
    than one task or takes no time, and where B takes memory.
    """

    def __init__(self, problem: Problem) -> None:
        stages = range(problem.placement.stages)
        if not all(fused_is_dominated(problem, s) for s in stages) or not problem.network.one_task_each:
            raise ValueError("the paper's program knows split backwards of one task only")
        self.problem = problem
        self.passes = [
            [Pass(kind, s, j) for s in held for kind in (F, B, W) for j in problem.microbatches_of[s]]
            for held in problem.placement.stages_of
        ]
        every = [p for held in self.passes for p in held]
        if not all(map(problem.duration, every)):
            raise ValueError("the paper's program cannot order passes of no duration")
        self._ancestors = _ancestors(problem, every)
        self.lp = pulp.LpProblem("pipeline", pulp.LpMinimize)
        self.end = {
            p: self.lp.add_variable(f"end_{p.kind}_{p.stage}_{p.microbatch}", problem.duration(p)) for p in every
        }
        self.longest = self.lp.add_variable("longest", 0)
        self.lp += self.longest
        self.openings: list[pulp.LpVariable] = []
        self._before: dict[tuple[Pass, Pass], Before] = {}
        lags = sum(lag for p in every for _, lag in _needs(problem, p))
        self._one_after_another = sum(map(problem.duration, every)) + lags
        self._post()

    def _post(self) -> None:
        for p in self.end:
            for before, lag in _needs(self.problem, p):
                self.lp += self.end[p] >= self.end[before] + lag + self.problem.duration(p)
        for device, held in enumerate(self.passes):
            self._post_orders(held)
            self._post_memory(device, held)
            self._post_longest(device, held)

    def _post_orders(self, held: list[Pass]) -> None:
        """One after the other, in an order that is known or a binary's."""
        for number, x in enumerate(held):
            for y in held[:number]:
                first, second = self._known(x, y), self._known(y, x)
                if first or second:
                    self._before[x, y], self._before[y, x] = int(first), int(second)
                    continue
                binary = self.lp.add_variable(f"order_{len(self._before)}", cat=pulp.LpBinary)
                self._before[x, y], self._before[y, x] = binary, 1 - binary
                for one, other in ((x, y), (y, x)):
                    slack = self._one_after_another * self._before[other, one]
                    self.lp += self.end[other] >= self.end[one] + self.problem.duration(other) - slack

    def _post_memory(self, device: int, held: list[Pass]) -> None:
        """What ran before a forward has left there, and its own activation, fit. Only forwards take memory."""
        capacity = self.problem.room[device]
        if capacity is None:
            return
        change = {p: self.problem.network.change[p.kind, p.stage].total for p in held}
        for p in held:
            if p.kind is F:
                left = pulp.lpSum(change[q] * self._before[q, p] for q in held if q != p and change[q])
                self.lp += left + change[p] <= capacity

    def _post_longest(self, device: int, held: list[Pass]) -> None:
        """From the device's first start, or from time 0 for the makespan, to the end of what runs after any pass."""
        opening = self.lp.add_variable(f"opening_{device}", 0)
        if self.problem.objective is Objective.MAKESPAN:
            opening.bounds(0, 0)
        self.openings.append(opening)
        for p in held:
            self.lp += opening <= self.end[p] - self.problem.duration(p)
            after = pulp.lpSum(self.problem.duration(q) * self._before[p, q] for q in held if q != p)
            self.lp += self.longest >= self.end[p] + after - opening

    def _known(self, x: Pass, y: Pass) -> bool:
        return y in self._ancestors and x in self._ancestors[y]

    def warm_start(self) -> bool:
        """Start from the greedy's schedule; False where it is not defined or does not fit the memory."""
        try:
            timeline = best_times(self.problem, HEURISTICS["zb"].order(self.problem))
        except DoesNotApply:
            return False
        if validate(timeline):
            return False
        for p, end in self.end.items():
            end.setInitialValue(timeline.end(p))
        for (x, y), before in self._before.items():
            if isinstance(before, pulp.LpVariable):
                before.setInitialValue(int(timeline.start(x) < timeline.start(y)))
        for opening, held in zip(self.openings, self.passes, strict=True):
            first = min(map(timeline.start, held)) if self.problem.objective is Objective.SPAN else 0
            opening.setInitialValue(first)
        self.longest.setInitialValue(measure(timeline).value(self.problem.objective))
        return True

    def decode(self) -> Schedule:
        """CBC's order: a pass comes after as many as the binaries put before it."""
        return schedule_of((sorted(held, key=partial(self._place, held)) for held in self.passes), "ilp")

    def _place(self, held: list[Pass], p: Pass) -> int:
        return sum(round(pulp.value(self._before[q, p])) for q in held if q != p)


def _needs(problem: Problem, p: Pass) -> list[tuple[Pass, int]]:
    """What a pass waits for, with lags: the problem's own needs, and the micro-batch before in its line."""
    needs = list(problem.network.predecessors(p, ()))
    if p.microbatch > problem.microbatches_of[p.stage][0]:
        needs.append((p._replace(microbatch=p.microbatch - 1), 0))
    return needs


def _ancestors(problem: Problem, every: list[Pass]) -> dict[Pass, frozenset[Pass]]:
    """The passes of the same device that must run before each pass."""
    where = {p: problem.device(p) for p in every}
    found: dict[Pass, set[Pass]] = {}
    todo = list(every)
    while todo:
        p = todo[-1]
        needs = [before for before, _ in _needs(problem, p)]
        missing = [before for before in needs if before not in found]
        if p in found or not missing:
            todo.pop()
            found.setdefault(p, set(needs).union(*(found[before] for before in needs)))
        else:
            todo += missing
    return {p: frozenset(q for q in before if where[q] == where[p]) for p, before in found.items()}
