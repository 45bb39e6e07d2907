"""Opening times of devices when the span counts: earliest starts in ticks, chosen so that no device waits."""

from __future__ import annotations

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks


def openings(problem: Problem) -> list[list[Ticks]]:
    """Return candidates for the opening times, each with an entry in ticks for every device; at least one.

    They are 0, or for the span the arrival of the first forward. One candidate is for all chains; others are for a
    single chain, for which the others wait: where one chain reaches a device first and the other last, a device that
    starts both at once is also the last to end.
    """
    if not problem.objective.by_device:
        return [[0] * problem.devices]
    where, opens_of_chains = problem.placement.stage_device, list[dict[int, int]]()
    for chain in (chain for chain in problem.placement.chains if problem.microbatches_of[chain[0]]):
        now, opens = 0, dict[int, int]()
        for stage, after in zip(chain, (*chain[1:], None), strict=True):
            opens.setdefault(where[stage], now)
            now += problem.pipeline.ticks[F, stage] + (0 if after is None else problem.lag(stage, after))
        opens_of_chains.append(opens)
    all_of = [
        min((opens[device] for opens in opens_of_chains if device in opens), default=0)
        for device in range(problem.devices)
    ]
    found = [all_of]
    for opens in opens_of_chains:
        led = [opens.get(device, since) for device, since in enumerate(all_of)]
        if led not in found and led[::-1] not in found:  # mirrored chains do the same
            found.append(led)
    return found
