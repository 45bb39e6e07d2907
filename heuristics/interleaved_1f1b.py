"""Interleaved 1F1B (VPP): each device holds several chunks, and groups of p micro-batches run through them in turn."""

from __future__ import annotations

from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from heuristics.requirements import equal_costs, round_robin
from pipesched.passes import BW, F, Pass
from pipesched.problem import Problem
from pipesched.schedule import Schedule, schedule_of


def interleaved_1f1b(problem: Problem) -> Schedule:
    """Megatron's order for any number of chunks v and micro-batches m.

    With groups of n micro-batches (n = p where p divides m), device d warms up with 2(p-1-d) + (v-1)n forwards, then
    alternates.
    """
    v = round_robin(problem)
    p = problem.devices
    groups = _groups(problem.microbatches, p)
    walk = _chunk_walk(groups, v)
    orders = []
    for d in range(p):
        forwards = [Pass(F, chunk * p + d, j) for chunk, j in walk]
        backwards = [Pass(BW, (v - 1 - chunk) * p + d, j) for chunk, j in walk]
        warm_up = min(len(walk), 2 * (p - 1 - d) + (v - 1) * len(groups[0])) if v > 1 else min(len(walk), p - 1 - d)
        order = forwards[:warm_up]
        for forward, backward in zip(forwards[warm_up:], backwards, strict=False):  # steady
            order += [forward, backward]
        order += backwards[len(walk) - warm_up :]  # cool-down
        orders.append(order)
    return schedule_of(orders, "interleaved-1f1b")


def _groups(m: int, p: int) -> list[range]:
    """The micro-batches in m // p groups, as equal as can be, larger first.

    A group smaller than p would not fill the way around the devices and can deadlock (p=4, v=3, m=5); Megatron too
    refuses one. PyTorch forms the same groups where they come out equal, and refuses the rest.
    """
    count = max(1, m // p)
    sizes = [m // count + (group < m % count) for group in range(count)]
    return [range(sum(sizes[:group]), sum(sizes[: group + 1])) for group in range(count)]


def _chunk_walk(groups: list[range], v: int) -> list[tuple[int, int]]:
    """(chunk, micro-batch) in the order forwards run: a group of micro-batches through chunk 0, then chunk 1, ..."""
    return [(chunk, j) for group in groups for chunk in range(v) for j in group]


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or m % p:
        return None
    v = round_robin(problem)
    makespan = (m * v + p - 1) * (cost.F + cost.BW)
    ahead = 2 if v > 1 else 1
    chunks = [min(m * v, ahead * (p - 1 - d) + (v - 1) * p + 1) for d in range(p)]
    each = set(problem.memory.activation)
    peak = tuple(held * min(each) for held in chunks) if len(each) == 1 else None
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
