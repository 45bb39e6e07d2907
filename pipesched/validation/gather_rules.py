"""Rules for gathered parameters: passes run while their stage's parameters are gathered, by the device's order."""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.problem.formatting import amount
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import BW, OFFLOAD, ONCE, RELOAD, RESHARD, UNSHARD, B, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.violation import Violation

_NO_USE = (OFFLOAD, RELOAD, *ONCE)
_BACKWARDS = (B, W, BW)


def gathers(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """Yield violations unless gatherings and drops of a stage alternate, with every pass that needs one in between.

    Also if they are not numbered from 0, or exceed the limits on gatherings.
    """
    count, window = 0, problem.parameters.window
    for device in range(problem.devices):
        there: dict[int, int] = {}  # how often each stage has been gathered, and it is now
        gone: dict[int, int] = {}  # the same where it has been dropped since
        for p in schedule.passes_on(device):
            if problem.stages[_owner(problem, p)].gather is not None or p.kind in (UNSHARD, RESHARD):
                yield from _at_place(problem, p, there, gone)
                count += p.kind is UNSHARD
                if p.kind is UNSHARD and window is not None and len(there) > window:
                    text = f"at {pass_text(problem, p)} {len(there)} stages of device {device} are gathered"
                    yield Violation("memory", (p,), f"{text}; its window is {window}")
        for stage, times in there.items():
            last = Pass(UNSHARD, stage, times - 1)
            named, release = pass_text(problem, last), pass_text(problem, last._replace(kind=RESHARD))
            yield Violation("complete", (last,), f"{named} has no release, {release}")
        for stage, times in gone.items():
            own = problem.stages[stage].gather
            if own is not None and times > own.most:
                yield Violation(
                    "parameters",
                    (),
                    f"stage {stage // problem.chain_arcs.pieces} is gathered {times} times; its limit is {own.most}",
                )
    limit = problem.parameters.most
    if limit is not None and count > limit:
        yield Violation("parameters", (), f"parameters are gathered {count} times; the limit is {limit}")


def _at_place(problem: Problem, p: Pass, there: dict[StageId, int], gone: dict[StageId, int]) -> Iterator[Violation]:
    """Yield the violations of a pass at its place in the order.

    `there` and `gone` count by stage the gatherings so far, of stages gathered now and of stages dropped since; both
    are updated.
    """
    stage, named = _owner(problem, p), pass_text(problem, p)
    whole = stage // problem.chain_arcs.pieces
    if p.kind is UNSHARD:
        if problem.stages[stage].gather is None:
            yield Violation("complete", (p,), f"{named} is run, but the parameters of stage {whole} are always there")
        elif stage in there or p.microbatch != gone.get(stage, 0):
            yield Violation("complete", (p,), f"{named} is out of turn: gatherings of a stage count from 0 on")
        there[stage] = gone.pop(stage, 0) + 1
    elif p.kind is RESHARD:
        if there.get(stage, 0) != p.microbatch + 1:
            yield Violation(
                "complete", (p,), f"{named} is out of turn: it follows {pass_text(problem, p._replace(kind=UNSHARD))}"
            )
        gone[stage] = there.pop(stage, 0)
    elif not needs_no_parameters(problem, p) and stage not in there:
        text = f"{named} needs the parameters of stage {whole}, which are not gathered where it stands"
        yield Violation("parameters", (p,), text)


def tied_by_gathers(problem: Problem, schedule: Schedule) -> Iterator[tuple[Pass, Pass]]:
    """Yield pairs of passes of which the first must have ended before the second starts, for gathered parameters.

    For orders that `gathers` finds valid.
    """
    if all(stage.gather is None for stage in problem.stages):
        return
    for device in range(problem.devices):
        at: dict[int, Pass] = {}  # the last gathering or release of each stage
        last: Pass | None = None  # the last release of all
        used: dict[int, list[Pass]] = {}
        for p in schedule.passes_on(device):
            stage = _owner(problem, p)
            if problem.stages[stage].gather is None or needs_no_parameters(problem, p):
                continue
            if stage in at:
                yield at[stage], p
            if p.kind is UNSHARD and last is not None and problem.parameters.window is not None:
                yield last, p
            last = p if p.kind is RESHARD else last
            if p.kind is RESHARD:
                yield from ((user, p) for user in used.pop(stage, ()))
            if p.kind in (UNSHARD, RESHARD):
                at[stage] = p
            else:
                used.setdefault(stage, []).append(p)


def around_gathers(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations unless passes start after their gathering has ended, and the drop after the last of them."""
    problem = timeline.problem
    for before, after in tied_by_gathers(problem, timeline.schedule):
        if timeline.start(after) < timeline.end(before):
            begun, ended = amount(problem, timeline.start(after)), amount(problem, timeline.end(before))
            one, other = pass_text(problem, before), pass_text(problem, after)
            text = f"{other} starts at {begun}, but {one} ends at {ended}"
            yield Violation("precedence", (before, after), text)


def needs_no_parameters(problem: Problem, p: Pass) -> bool:
    """Return True for a pass that computes without its stage's parameters.

    These are copies, passes once an iteration, and backwards of frozen stages that no gradient reaches.
    """
    return p.kind in _NO_USE or (problem.stages[p.stage].forward_only and p.kind in _BACKWARDS)


def _owner(problem: Problem, p: Pass) -> StageId:
    """Return the stage that holds the parameters with which a pass computes, or for which it runs."""
    return problem.parameters.holder(p.stage)
