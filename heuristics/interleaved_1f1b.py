"""Interleaved 1F1B (VPP): each device holds several chunks, and groups of p micro-batches run through them in turn.

The parts that the whole interleaved family is made of are here: the turns in which chunks and micro-batches come
up, each device's warm-up, and the alternation of one forward and one backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from heuristics.requirements import chunk_peaks, equal_costs, round_robin
from pipesched.passes import BW, F, Pass
from pipesched.problem import Problem
from pipesched.schedule import Schedule, Slot, overlapped


class Walk(NamedTuple):
    """What one device runs: its forwards and its (full) backwards in order, and how many forwards come first."""

    forwards: list[Pass]
    backwards: list[Pass]
    warm_up: int


def interleaved_1f1b(problem: Problem) -> Schedule:
    """Megatron's order for any number of chunks v and micro-batches m; with v = 1 it is 1F1B.

    With groups of n micro-batches (n = p where p divides m), device d warms up with 2(p-1-d) + (v-1)n forwards, then
    alternates.
    """
    hop = 2 if round_robin(problem) > 1 else 1
    orders = [one_forward_one_backward(walk) for walk in walks(problem, even_groups(problem), hop)]
    return Schedule(tuple(map(tuple, orders)), "interleaved-1f1b")


def even_groups(problem: Problem) -> list[range]:
    """The micro-batches in m // p groups, as equal as can be, larger first.

    A group smaller than p would not fill the way around the devices and can deadlock (p=4, v=3, m=5); Megatron too
    refuses one. PyTorch forms the same groups where they come out equal, and refuses the rest.
    """
    m = problem.microbatches
    count = max(1, m // problem.devices)
    sizes = [m // count + (group < m % count) for group in range(count)]
    return [range(sum(sizes[:group]), sum(sizes[: group + 1])) for group in range(count)]


def walks(problem: Problem, groups: Sequence[range], hop: int, extra: int = 0) -> list[Walk]:
    """Every device's walk: each group of micro-batches forwards through chunk 0, 1, ..., and back from the last chunk.

    The last device warms up with the first group's forwards of all chunks but one, and `extra` more; each device
    before it with `hop` more than the one after it.
    """
    v, p = round_robin(problem), problem.devices
    turns = [(chunk, j) for group in groups for chunk in range(v) for j in group]
    found = []
    for d in range(p):
        forwards = [Pass(F, chunk * p + d, j) for chunk, j in turns]
        backwards = [Pass(BW, (v - 1 - chunk) * p + d, j) for chunk, j in turns]
        warm_up = (v - 1) * len(groups[0]) + hop * (p - 1 - d) + extra
        found.append(Walk(forwards, backwards, min(len(turns), warm_up)))
    return found


def one_forward_one_backward(walk: Walk, paired: bool = False) -> list[Slot]:
    """The warm-up's forwards, then forward and backward in turn (paired: in one slot), then the backwards left."""
    order: list[Slot] = [(forward,) for forward in walk.forwards[: walk.warm_up]]
    for forward, backward in zip(walk.forwards[walk.warm_up :], walk.backwards, strict=False):  # steady
        order += [overlapped(forward, backward)] if paired else [(forward,), (backward,)]
    left = len(walk.backwards) - walk.warm_up
    return order + [(backward,) for backward in walk.backwards[left:]]  # cool-down


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or m % p:
        return None
    v = round_robin(problem)
    makespan = (m * v + p - 1) * (cost.F + cost.BW)
    hop = 2 if v > 1 else 1
    peak = chunk_peaks(problem, [hop * (p - 1 - d) + (v - 1) * p + 1 for d in range(p)])
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="interleaved-1f1b",
        reference="Narayanan et al., Megatron-LM, arXiv 2104.04473, section 2.2",
        needs="stage s on device s mod p (interleaved placement), any number of chunks v",
        bubble="(p-1)(F+BW) with F, BW of one chunk, if p divides m",
        peak="2(p-1-d) + (v-1)p + 1 chunk activations on device d (v > 1, p divides m)",
        order=interleaved_1f1b,
        closed_form=_closed_form,
    )
)
