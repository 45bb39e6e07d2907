"""BPipe: 1F1B in which the first devices move activations to the last ones and back, so that all have about as many.

In 1F1B the i-th of p devices (i from 0) has up to p - i activations, and its partner, the (p-1-i)-th, up to i + 1. A
device that would have more than ceil((p+2)/2) evicts one to its partner first, and loads it back before its backward.
That is half of the p + 1 activations of both, and one for what is in transit.

The evicted activation is that whose backward is last, of those whose forward ended a pass ago, so that the copy runs
during that pass; a load runs during the pass before its backward.
"""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.building.requirements import equal_costs, one_stage_a_device
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from heuristics.one_f_one_b import one_f_one_b
from pipesched.deadline import asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import OFFLOAD, RELOAD, F, Pass, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule, Wait, schedule_of


def most_activations(devices: int) -> int:
    """Return the most activations that a device stores with BPipe, its own and its partner's: ceil((p+2)/2)."""
    return (devices + 3) // 2


def bpipe(problem: Problem) -> Schedule:
    """Return 1F1B with evictions and loads, such that no device has more activations than `most_activations`.

    A device evicts an activation to its partner (a pass OFFLOAD) before a forward that would exceed that number, and
    loads it back (RELOAD) before its backward; waits keep these copies in their places. Raises `DoesNotApply` unless
    there is one stage per device, 1F1B exceeds the number somewhere, and on devices where it does, activations may
    both be kept and move to the partner.
    """
    chain, most = one_stage_a_device(problem), most_activations(problem.devices)
    if min(problem.devices, problem.microbatches) <= most:
        raise DoesNotApply(
            f"needs more than {most} activations on some device in 1f1b: 4 or more devices, more micro-batches"
        )
    where, one = problem.placement.stage_device, one_f_one_b(problem)
    orders, waits = [list(one.passes_on(device)) for device in range(problem.devices)], list[Wait]()
    for i, stage in asking(enumerate(chain)):
        if min(problem.devices - i, problem.microbatches) > most:
            _require_partner(problem, stage, where[chain[-1 - i]])
            orders[where[stage]], own = _with_copies(problem, orders[where[stage]], most)
            waits += own
    return Schedule(schedule_of(orders).orders, "bpipe", waits=waits)


def _require_partner(problem: Problem, stage: StageId, partner: DeviceId) -> None:
    """Raise `DoesNotApply` unless activations of the stage may be kept, and may move to the partner."""
    own = problem.stages[stage]
    if own.offload is None or own.offload.to != partner or not own.may_keep:
        device = problem.placement.stage_device[stage]
        if own.offload is None:
            found = "none that move"
        elif own.offload.to != partner:
            found = "the host" if own.offload.to is None else f"to {own.offload.to}"
        else:
            found = "always moved"
        raise DoesNotApply(
            f"needs activations of device {device} that may move to device {partner}, or be kept: "
            f"give memory.offload.to (found: {found})"
        )


def _with_copies(problem: Problem, passes: Sequence[Pass], most: int) -> tuple[list[Pass], list[Wait]]:
    """Return one device's passes in order, with evictions and loads inserted, and the waits between passes and copies.

    `most` is the number of activations, its own and its partner's, that the device may have at once.
    """
    before: dict[int, list[Pass]] = {}
    waits, here, away = list[Wait](), set[int](), set[int]()
    loaded: Pass | None = None
    for n, p in enumerate(passes):
        if p.kind is not F and p.microbatch in away:  # there was no room for it when the pass before began
            loaded = _load(problem, passes, n, p, before, waits)
            away.discard(p.microbatch)
            here.add(p.microbatch)
        following = passes[n + 1] if n + 1 < len(passes) else None
        needed = following if following and following.kind is not F and following.microbatch in away else None
        if p.kind is F and len(here) + (needed is not None) >= most:
            gone = p._replace(kind=OFFLOAD, microbatch=max(here - {passes[n - 1].microbatch}))
            before.setdefault(n - 1, []).append(gone)
            waits.append(Wait(_end(problem, gone), Task(p)))
            waits += [] if loaded is None else [Wait(_end(problem, loaded), Task(gone))]
            here.discard(gone.microbatch)
            away.add(gone.microbatch)
        here |= {p.microbatch} if p.kind is F else set()
        if needed is not None and len(here) < most:
            loaded = _load(problem, passes, n, needed, before, waits)
            here.add(needed.microbatch)
            away.discard(needed.microbatch)
        here -= {p.microbatch} if p.kind is not F else set()
    return [each for n, p in enumerate(passes) for each in (*before.get(n, ()), p)], waits


def _load(
    problem: Problem, passes: Sequence[Pass], at: int, backward: Pass, before: dict[int, list[Pass]], waits: list[Wait]
) -> Pass:
    """Insert the load of a backward's activation before the pass at place `at`, and return it.

    `before` collects the copies before each place of `passes`; the load waits for the end of the pass before `at`,
    which is appended to `waits`.
    """
    load = backward._replace(kind=RELOAD)
    before.setdefault(at, []).append(load)
    waits.append(Wait(_end(problem, passes[at - 1]), Task(load)))
    return load


def _end(problem: Problem, p: Pass) -> Task:
    return Task(p, problem.network.ends[p[:2]][-1])


def _closed_form(problem: Problem) -> ClosedForm | None:
    """Return 1F1B's makespan and span for equal stages, if both copies together are no longer than F or B; else None.

    None also if transfers take time, or copies share a stream with passes or with other devices, on which they wait for
    each other.
    """
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    copies = [stage.offload for stage in problem.stages if stage.offload is not None]
    busy = any(stage.stream in (one.out_stream, one.in_stream) for stage in problem.stages for one in copies)
    busy = busy or bool(problem.resources.shared_streams)
    if cost is None or busy or any(one.out_ticks + one.in_ticks > min(cost.F, cost.BW) for one in copies):
        return None
    makespan = (m + p - 1) * (cost.F + cost.BW)
    return ClosedForm(makespan=makespan, span=makespan)


HEURISTICS.register(
    Heuristic(
        name="bpipe",
        reference="Kim et al., BPipe, ICML 2023",
        needs="memory.offload.to from the i-th device to the (p-1-i)-th, i < p/2; one stage a device",
        bubble="(p-1)(F+BW) if both copies together take no longer than F",
        peak="at most ceil((p+2)/2) on any device, those of its partner included",
        order=bpipe,
        closed_form=_closed_form,
    )
)
