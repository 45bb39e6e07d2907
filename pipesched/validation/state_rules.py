"""The rules of an iteration ordered anew from a state, in words of their own: what ran stays, the rest keeps all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pipesched.problem.pass_names import pass_text, stage_text
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.state import Ran, State
from pipesched.validation.pass_rules import met
from pipesched.validation.violation import Violation


def validate_from_state(problem: Problem, state: State, passes: Mapping[Pass, Ran]) -> list[Violation]:
    """Every rule that is broken, of problems whose passes are single tasks; `passes` are all passes, in ticks."""
    return [*_kept(problem, state, passes), *_complete(problem, passes), *_turns(problem, state, passes),
            *_needs(problem, state, passes), *_memory(problem, passes)]  # fmt: skip


def _kept(problem: Problem, state: State, passes: Mapping[Pass, Ran]) -> Iterator[Violation]:
    """What has begun is as it was; what has not starts later than now, and lasts as long as the problem says."""
    for p, was in state.ran.items():
        if passes.get(p) != was:
            yield Violation("state", (p,), f"{pass_text(problem, p)} has begun, and is not where it was")
    for p, (start, end) in passes.items():
        own = problem.stages[p.stage]
        ticks = {F: own.forward, B: own.backward, W: own.weight or 0, BW: own.fused}[p.kind]
        if p not in state.ran and (start < state.now or end - start != ticks):
            yield Violation("state", (p,), f"{pass_text(problem, p)} starts before now, or lasts another time")


def _complete(problem: Problem, passes: Mapping[Pass, Ran]) -> Iterator[Violation]:
    for stage, walked in enumerate(problem.microbatches_of):
        for j in walked:
            kinds = {kind for kind in (F, B, W, BW) if Pass(kind, stage, j) in passes}
            if kinds != {F, BW} and not (problem.splittable and kinds == {F, B, W}):
                have = ", ".join(sorted(kinds)) or "nothing"
                yield Violation("complete", (Pass(F, stage, j),), f"{stage_text(problem, stage, j)} runs {have}")


def _turns(problem: Problem, state: State, passes: Mapping[Pass, Ran]) -> Iterator[Violation]:
    """One pass of a device at a time."""
    for device in range(problem.devices):
        own = sorted((times, p) for p, times in passes.items() if problem.placement.stage_device[p.stage] == device)
        for (one, p), (other, q) in pairwise(own):
            if other.start < one.end and not (p in state.ran and q in state.ran):
                text = f"{pass_text(problem, q)} starts before {pass_text(problem, p)} ends on device {device}"
                yield Violation("overlap", (p, q), text)


def _needs(problem: Problem, state: State, passes: Mapping[Pass, Ran]) -> Iterator[Violation]:
    """Tensors arrive before what uses them; between passes that have both begun they did."""
    links, where = problem.links, problem.placement.stage_device

    def after(first: Pass, then: Pass, ticks: int) -> Iterator[Violation]:
        one, other = passes.get(first), passes.get(then)
        if one and other and other.start < one.end + ticks and not (first in state.ran and then in state.ran):
            text = f"{pass_text(problem, then)} starts before what {pass_text(problem, first)} gives is there"
            yield Violation("precedence", (first, then), text)

    def lag(low: int, here: int, there: int) -> int:
        if here == there:
            return 0
        return problem.stages[low].transfer + (links[here][there] if links else 0)

    for chain in problem.placement.chains:
        for j in problem.microbatches_of[chain[0]]:
            for stage in chain:
                for kind in (B, BW):
                    yield from after(Pass(F, stage, j), Pass(kind, stage, j), 0)
                yield from after(Pass(B, stage, j), Pass(W, stage, j), 0)
            for low, high in pairwise(chain):
                yield from after(Pass(F, low, j), Pass(F, high, j), lag(low, where[low], where[high]))
                for kind in (B, BW):
                    for other in (B, BW):
                        yield from after(Pass(kind, high, j), Pass(other, low, j), lag(low, where[high], where[low]))
    for before, then, backward, places, turns, barrier in problem.stage_arcs:
        own = problem.stages[before].transfer
        ticks = own if barrier else lag(then if backward else before, where[before], where[then])
        for i, j in met(problem, before, then, backward, places):
            for kind in (B, BW) if backward and not turns else (F,):
                for other in (B, BW) if backward else (F,):
                    yield from after(Pass(kind, before, i), Pass(other, then, j), ticks)


def _memory(problem: Problem, passes: Mapping[Pass, Ran]) -> Iterator[Violation]:
    """What is given back at an end is there for what starts then."""
    for device, room in enumerate(problem.room):
        level = 0
        for p in sorted((p for p in passes if problem.device(p) == device), key=passes.__getitem__):
            own = problem.stages[p.stage]
            taken = {F: own.activation + own.lent, B: max(0, -own.freed)}.get(p.kind, 0)
            given = {BW: own.activation, B: max(0, own.freed), W: own.activation - own.freed}.get(p.kind, 0)
            if room is not None and taken and level + taken > room:
                yield Violation("memory", (p,), f"device {device} has no room for {pass_text(problem, p)}")
                break
            level += taken - given - (own.collected if p.kind in (B, BW) else 0)
