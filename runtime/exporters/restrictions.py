"""Restriction of a problem to what a runtime supports, before it is solved: `solve --for`.

A restriction here either is stated by the problem's numbers, or costs nothing: `adapted` then rewrites a schedule so
that it satisfies it. All else that a runtime cannot run, such as a placement, is refused by its exporter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of

_Restricted = Callable[[Problem], Problem]
_Adapted = Callable[[Problem, Schedule], Schedule]


@dataclass(frozen=True)
class Restriction:
    """A runtime that `--for` names, the name of its exporter, and how problems and schedules are fitted to it.

    `restricted` returns the problem restricted to what the runtime supports; `adapted` rewrites a schedule found for
    that problem so that it satisfies the restriction. The exporter may still refuse the schedule. `words` returns what
    the restriction leaves out, one text each. `options` are those for the exporter, by name.
    """

    name: str
    exporter: str
    words: Callable[[Problem], tuple[str, ...]] = lambda _: ()
    restricted: _Restricted = lambda problem: problem
    adapted: _Adapted = lambda _, schedule: schedule
    options: Callable[[Problem], Mapping[str, str]] = lambda _: {}


def _fused_only(problem: Problem) -> Problem:
    """Return the problem with every backward fused, and without overlapped blocks."""
    stages = (replace(s, backward=s.fused, weight=None) for s in problem.without_blocks().stages)
    return replace(problem, stages=tuple(stages))


def _fused_words(problem: Problem) -> tuple[str, ...]:
    split = ("every backward is fused (BW)",) if problem.pipeline.splits else ()
    blocks = ("no overlapped blocks",) if problem.network.blocks else ()
    last = ("on the last stage every backward directly follows its forward",)
    return (*split, *blocks, *(last if _is_last_alone(problem) else ()))


def _is_last_alone(problem: Problem) -> bool:
    """True if the device of the last stage has no other one, as DeepSpeed's engine for one stage a device needs.

    Its other engine, for a V, runs any order.
    """
    where = problem.placement
    return len(where.stages_of[where.stage_device[where.chains[0][-1]]]) == 1


def _no_blocks(problem: Problem) -> Problem:
    return problem.without_blocks()


def _no_blocks_words(problem: Problem) -> tuple[str, ...]:
    return ("no overlapped blocks",) if problem.network.blocks else ()


def _backward_after_forward(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule with the k-th forward of the last stage directly before its k-th backward, for each k.

    That backward takes the micro-batch of its forward. If the device of the last stage has another stage too, as in a
    V, the schedule stays as it is. If it has none, and backwards run in the order of the forwards, no pass ends later:
    nothing was ready before the first forward's input arrived, so all of them have to run after that in either order.
    """
    if not _is_last_alone(problem):
        return schedule
    last = problem.placement.chains[0][-1]

    def moved(passes: list[Pass]) -> Iterator[Pass]:
        forwards = iter([p for p in passes if (p.kind, p.stage) == (F, last)])
        for p in passes:
            if (p.kind, p.stage) == (BW, last):
                forward = next(forwards)
                yield from (forward, Pass(BW, last, forward.microbatch))
            elif p.stage != last:
                yield p

    # Without blocks the passes of a pair run in turn.
    devices = range(problem.devices)
    return schedule_of([moved(list(schedule.passes_on(device))) for device in devices], schedule.name)


def _whole_on(place: int) -> _Restricted:
    """Return a restriction: B of the stage at index `place` takes as long as BW, and its W no time.

    `place` is the first (0) or last (-1) of the chain.
    """

    def restricted(problem: Problem) -> Problem:
        if not problem.pipeline.splits:
            return problem
        stages, where = list(problem.stages), problem.placement.chains[0][place]
        stages[where] = replace(stages[where], backward=stages[where].fused, weight=0)
        return replace(problem, stages=tuple(stages))

    return restricted


def _fused_on(place: int) -> _Adapted:
    """Return an adaptation: B of the stage at index `place` is written as BW, and its W of no time left out.

    `place` is the first (0) or last (-1) of the chain. This takes no more memory.
    """

    def adapted(problem: Problem, schedule: Schedule) -> Schedule:
        where = problem.placement.chains[0][place]

        def written(p: Pass) -> Pass:
            return Pass(BW, where, p.microbatch) if (p.kind, p.stage) == (B, where) else p

        def kept(slot: Slot) -> bool:
            kind: PassKind = slot[0].kind
            return (kind, slot[0].stage) != (W, where)

        orders = [[tuple(map(written, slot)) for slot in order if kept(slot)] for order in schedule.orders]
        return Schedule(tuple(map(tuple, orders)), schedule.name)  # type: ignore[arg-type]

    return adapted


def _whole_words(which: str) -> Callable[[Problem], tuple[str, ...]]:
    return lambda problem: (f"the {which} stage's backward is whole (BW)",) if problem.pipeline.splits else ()


def _layers(problem: Problem) -> Mapping[str, str]:
    """Return torchtitan's option `layers`, under this key, for a model with one layer a stage.

    Embedding and head count. Only for three or more stages a device, else empty: fewer need no option. Users put the
    number of their model in its place in the export.
    """
    stages = problem.placement.stages
    return {"layers": str(stages - 2)} if stages > 2 * problem.devices else {}


RESTRICTIONS = {
    one.name: one
    for one in (
        Restriction("deepspeed", "deepspeed", _fused_words, _fused_only, _backward_after_forward),
        Restriction("jaxpp", "jaxpp", _whole_words("first"), _whole_on(0), _fused_on(0)),
        # Its chunked loss gives wrong gradients under a split backward: `runtime/configuration/torchtitan.py`.
        Restriction("torchtitan", "torchtitan", _whole_words("last"), _whole_on(-1), _fused_on(-1), _layers),
        Restriction("torch", "torch-csv"),
        Restriction("megatron-order", "megatron", _no_blocks_words, _no_blocks),
        Restriction("megatron-hybrid-order", "megatron", _no_blocks_words, _no_blocks),
    )
}
