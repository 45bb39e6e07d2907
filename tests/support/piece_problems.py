"""Tiny problems whose micro-batches are in several pieces, at random, and a comparison of all claims with every
order."""

from __future__ import annotations

from math import ceil
from random import Random
from typing import Any

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.passes import NORM, REDUCE, STEP, F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rendezvous import receives
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.solution import Solution, Status
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.solve import solve
from tests.support.counted import counted
from tests.support.exhaustive.definition import of_whole_passes
from tests.support.exhaustive.optimum import least, optimum
from tests.support.makers import problem

# Where stages lie: devices, keys, stages in all, and (micro-batches, pieces) that can be tried in every order, the last
# of them with a backward that may split too.
_SHAPES: tuple[tuple[int, dict[str, Any], int, tuple[tuple[int, int], ...]], ...] = (
    (1, {}, 1, ((3, 2), (2, 3), (2, 2), (1, 3))),
    (2, {}, 2, ((2, 3), (2, 2), (1, 3))),
    (3, {}, 3, ((2, 2), (1, 3), (1, 2))),
    (1, {"placement": "v-shape"}, 2, ((2, 2), (1, 3), (1, 2))),
    (2, {"placement": "v-shape"}, 4, ((1, 3), (1, 2))),
    (2, {"placement": "interleaved", "chunks": 2}, 4, ((1, 3), (1, 2))),
    (2, {"placement": [0, 1, 0]}, 3, ((1, 3), (2, 2), (1, 2))),
    (2, {"placement": [1, 0, 0]}, 3, ((1, 3), (1, 2))),
    (2, {"placement": "bidirectional"}, 4, ((2, 2),)),
)
# Those of which transfers may occupy a stream: what is tried grows faster.
_ON_STREAM: tuple[tuple[int, dict[str, Any], int, tuple[tuple[int, int], ...]], ...] = (
    (2, {}, 2, ((1, 2),)),
    (2, {"placement": [1, 0]}, 2, ((1, 2),)),
    (3, {}, 3, ((1, 2), (1, 2))),
)
# Units of CP-SAT's work in which each is proved.
PROVED = counted(3)
_MOST_ORDERS = 1_000


def tiny_pieces(random: Random) -> Problem:
    """Return a problem with random times and activations of every piece and stage, links or transfers on a stream.

    Memory is from too little to ample.
    """
    on_stream = random.random() < 0.2
    devices, keys, stages, counts = random.choice(_ON_STREAM if on_stream else _SHAPES)
    microbatches, count = random.choice(counts)
    split = (microbatches, count) == counts[-1] and random.random() < 0.5
    longest = random.choice((2, 5))

    def some(least: int, most: int) -> object:
        """A list of pieces for each stage, one list for all, what grows, or one number."""
        form = random.random()
        if form < 0.15:
            return random.randint(least, most)
        if form < 0.3:
            return {"first": random.randint(least, most), "each_earlier": random.choice((0, 1, 2))}
        rows = [[random.randint(least, most) for _ in range(count)] for _ in range(1 if form < 0.4 else stages)]
        return rows[0] if form < 0.4 else rows

    times: dict[str, Any] = {"forward": some(0, longest), "backward": some(0, longest + 1)}
    memory: dict[str, object] = {"activation": some(1, 2), "kept_for_later": random.choice((0, 0, 1, some(0, 2)))}
    if split:
        times |= {"weight": some(0, 3), "fused": some(0, 2 * longest)}
        memory["freed_by_backward"] = random.choice((0, 1, -1))
    times |= {"transfer": {"time": random.randint(1, 2), "on": "net"}} if on_stream else _transfer(random, devices)
    if random.random() < 0.8:
        each = count * -(-stages // devices)
        most = 5 if memory["kept_for_later"] == 0 else 7
        memory["capacity"] = [random.randint(2 * each - 1, most * each) for _ in range(devices)]
    memory["static"] = random.choice((0, 0, 1))
    objective = random.choice(("makespan", "makespan", "span"))
    keys = {"sequence_chunks": count, "times": times, "memory": memory, "objective": objective} | keys
    return problem(devices, microbatches, streams=["compute", "net"], **keys)


def tiny_saving_pieces(random: Random) -> Problem:
    """Return a problem of pieces whose activations may be offloaded, each in a time of its own, or recomputed."""
    devices, microbatches, count = random.choice(((1, 1, 2), (2, 1, 2), (1, 2, 2), (1, 1, 3)))

    def some(least: int, most: int) -> list[int]:
        return [random.randint(least, most) for _ in range(count)]

    memory: dict[str, object] = {
        "activation": random.randint(1, 3),
        "kept_for_later": random.choice((0, 0, 1)),
        "capacity": random.randint(2, 6),
    }
    if random.random() < 0.5:
        on = random.choice((["out", "in"], "pcie", ["compute", "in"]))
        host = random.choice(({}, {"host_capacity": random.randint(1, 4)}))
        memory["offload"] = {"out": some(0, 2), "in": some(0, 2), "on": on} | host
    else:
        memory["recompute"] = [{"name": "full", "time": random.randint(0, 2), "keeps": 0}]
    times = {"forward": some(0, 4), "backward": some(0, 4)}
    streams = ["compute", "out", "in", "pcie"]
    return problem(devices, microbatches, sequence_chunks=count, times=times, memory=memory, streams=streams)


def _transfer(random: Random, devices: int) -> dict[str, object]:
    kind = random.random()
    if devices == 1 or kind < 0.25:
        return {}
    if kind < 0.6:
        return {"transfer": random.randint(0, 2)}
    return {"transfer": [[0 if a == b else random.randint(0, 3) for b in range(devices)] for a in range(devices)]}


def least_of(one: Problem) -> int | None:
    """Return the least whole number of ticks of any order, micro-batches out of turn too; None if none fits.

    Asserts that the validator accepts that order, and that the simulator gives it this value.
    """
    if not of_whole_passes(one):
        found = least(one, one.objective, 5, _MOST_ORDERS)
        # A value that no whole tick reaches is that of the next one.
        return None if found is None else ceil(found)
    best = optimum(one, one.objective)
    if best is None:
        return None
    timeline = simulate(one, best.schedule)
    assert validate(timeline) == [], "the validator refuses the best order"
    assert one.objective == Objective.SPAN or value_of(one, timeline) == best.value, "the simulator takes other times"
    return best.whole


def features(one: Problem) -> tuple[str, ...]:
    """Return the names of a problem's features, and "all", by which drawn problems are counted."""
    where = one.placement
    count = one.chain_arcs.pieces
    has = {
        "keys and values": any(stage.kv_cache.taken for stage in one.stages),
        "memory": any(room is not None for room in one.room),
        "backwards that split": one.splittable,
        "transfers between devices": bool(one.links) or any(stage.transfer for stage in one.stages),
        "transfers on a stream": one.resources.transfer_stream is not None,
        "tasks on several streams": one.network.occupies_several,
        "transfers of both devices": receives(one),
        "several stages a device": not one.chain_arcs.modules and where.stages > where.devices * len(where.chains),
        "two directions": not one.chain_arcs.modules and len(where.chains) > count,
        "several modules": len(one.chain_arcs.modules) > 1,
        "copies of a module": any(module.copies > 1 and not module.shared for module in one.chain_arcs.modules),
        "an embedding on all devices": any(module.shared and not module.barriers for module in one.chain_arcs.modules),
        "a head on all devices, one barrier": any(module.barriers == 1 for module in one.chain_arcs.modules),
        "a head on all devices, two barriers": any(module.barriers == 2 for module in one.chain_arcs.modules),
        "a pass for several micro-batches": any(module.serves > 1 for module in one.chain_arcs.modules),
        "a module that feeds several stages": any(len(module.feeds) > 1 for module in one.chain_arcs.modules),
        "micro-batches in any turn": one.microbatches > len(where.chains) and not one.walks.queues,
        "offload": any(stage.offload for stage in one.stages),
        "recomputation": any(stage.recompute for stage in one.stages),
        "span": one.objective == Objective.SPAN,
        "gatherings": any(stage.gather for stage in one.stages),
        "a window of gathered stages": one.parameters.window is not None,
        "a limit of gatherings": one.parameters.most is not None,
        "reductions": any(REDUCE in stage.kinds_once for stage in one.stages),
        "a norm of all gradients": any(NORM in stage.kinds_once for stage in one.stages),
        "steps": any(STEP in stage.kinds_once for stage in one.stages),
        "iterations that overlap": one.objective == Objective.SPAN and one.network.has_collectives,
        "collectives and pieces": one.network.has_collectives and count > 1,
        "collectives and offload or recomputation": one.network.has_collectives and bool(one.network.options),
        "collectives and modules": one.network.has_collectives and bool(one.chain_arcs.modules),
        "collectives and lookups": one.network.has_collectives and any(stage.entry(F) for stage in one.stages),
    }
    return ("all", *(name for name, found in has.items() if found))


def compared(one: Problem) -> tuple[str, ...]:
    """The features that were seen; AssertionError where solve, bounds, validator or check differ from every order.

    `TooManyOrdersError` where not all were tried: the schedule found is then valid, and no bound above its value.
    """
    found = solve(one, PROVED)
    bounds = certificates(one, one.objective)
    if found.timeline is not None:
        assert validate(found.timeline) == [], "the validator refuses what solve found"
        value = value_of(one, found.timeline)
        assert max(bound.value_ticks for bound in bounds) <= value, f"a bound is above {value}"
    best = least_of(one)
    if best is None:
        # Where a host's memory alone lets nothing fit, that is not proved.
        known = (Status.INFEASIBLE, Status.UNKNOWN) if one.resources.hosts else (Status.INFEASIBLE,)
        assert found.status in known, f"found {found.status}, where no order fits"
        return ("nothing fits",)
    assert why_infeasible(one) is None, "an order fits"
    _agrees(one, found, best)
    for bound in bounds:
        assert bound.value_ticks <= best, f"{bound.kind} claims {bound.value_ticks}, an order takes {best}"
        verdict = check_bound(one, bound).verdict
        unknown = _not_covered(one) and verdict is Verdict.NOT_VERIFIED
        assert unknown or verdict is Verdict.VERIFIED, f"{bound.kind} is not confirmed"
    return ("a bound attained",) * (max(bound.value_ticks for bound in bounds) == best)


def _not_covered(one: Problem) -> bool:
    """Return True if the check may answer "not verified": collectives with transfers on a stream or passes of several
    tasks."""
    return one.network.has_collectives and (
        one.resources.transfer_stream is not None or any(stage.tasks for stage in one.stages)
    )


def _agrees(one: Problem, found: Solution, best: int) -> None:
    """Assert that solve found the least value and proved it, and that `check` does not refuse its certificate.

    Of a span all is proved but the last fraction of a tick: CP-SAT counts in whole ones.
    """
    assert found.value_ticks is not None and found.timeline is not None
    value, bound = (in_ticks_of(one, ticks, found.problem) for ticks in (found.value_ticks, found.lower_bound_ticks))
    assert ceil(value) == best, f"found {value}, an order takes {best}"
    whole = one.objective == Objective.SPAN and best - 1 < bound <= value
    assert whole or found.status is Status.OPTIMAL, f"{found.status}, bound {bound}, an order takes {best}"
    if found.certificate is not None:
        verdict = check_bound(found.problem, found.certificate).verdict
        assert verdict is not Verdict.REFUSED, f"{found.certificate.kind}: {verdict}"
        assert _not_covered(one) or verdict is not Verdict.NOT_VERIFIED, f"{found.certificate.kind}: {verdict}"
