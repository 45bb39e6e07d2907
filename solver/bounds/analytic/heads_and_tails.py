"""Heads and tails of a device: least times from the start that counts to it, and from it to the end that counts.

Under the span start and end are those of another device that all micro-batches pass first, so the work of one device
bounds the span of another. For the makespan heads are from time 0 and tails to the end of the first stage (Carlier,
EJOR 11, 1982).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.problem import Objective
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from solver.bounds.analytic.critical_paths import Paths, entry_stage


class HeadsAndTails(NamedTuple):
    """Least ticks from the start of device `owner` to a device, and from that device to the owner's end.

    `heads` and `tails` have an entry for each chain on the device: `heads` to the start of the chain's first forward
    there, `tails` from the end of the gradient pass on its first stage there. If `owner` is None, they count from time
    0, and to the end of the schedule.
    """

    owner: DeviceId | None
    heads: list[Ticks]
    tails: list[Ticks]

    @property
    def least_head(self) -> Ticks:
        """The smallest of `heads`, in ticks: no pass of any chain on the device starts sooner."""
        return min(self.heads)


def heads_and_tails(paths: Paths, objective: Objective, first: Sequence[StageId]) -> Iterator[HeadsAndTails]:
    """Yield the heads and tails of one device: once for the makespan; for the span, for each device that may be owner.

    Owners are the device itself, and each device that all of its chains pass before. `first` has the first stage of
    each chain on the device.
    """
    if not objective.by_device:
        yield HeadsAndTails(None, [paths.head[s] for s in first], [paths.tail(s) for s in first])
        return
    for owner in range(paths.view.devices):
        # If every chain passes the owner first, the owner surely begins before the other device, and ends after it.
        gates = [gate for s in first for gate in [entry_stage(paths.view, owner, s)] if gate is not None]
        if len(gates) == len(first):
            heads = [paths.head[s] - paths.head[gate] for s, gate in zip(first, gates, strict=True)]
            yield HeadsAndTails(owner, heads, [paths.tail_until(s, gate) for s, gate in zip(first, gates, strict=True)])
