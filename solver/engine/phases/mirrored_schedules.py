"""Phase for two chains that are mirror images: schedules in which both do the same, searched on half of the devices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from solver.construction.mirrored import folded, unfolded
from solver.engine.search import Engine, Search


@dataclass(frozen=True)
class MirroredSchedules:
    """What `engine` finds for one chain in a share of the time; all else goes on from there.

    That problem has half of the passes, and a change in it is one of both chains at once.
    """

    engine: Engine
    share: float = 0.3
    name: str = "mirrored schedules"

    def applies(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and folded(search.problem) is not None

    def run(self, search: Search) -> None:
        half, limits = folded(search.problem), search.limits
        assert half is not None
        work = None if limits.deterministic is None else self.share * limits.deterministic
        limits = replace(limits, seconds=search.clock.left(self.share), deterministic=work, target=None)
        one = Search(half, limits, lambda _: None, search.stop, self.engine, search.done)
        one.run()
        for timeline in (one.incumbent.timeline, *one.starts()):
            if timeline is not None and not search.done():
                search.start_from(unfolded(search.problem, timeline.schedule))
