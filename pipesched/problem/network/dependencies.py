"""Precedence of passes: the tasks of every pass, and the passes it waits for. It is defined here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipesched.problem.features.device_resources import SharedStream
from pipesched.problem.features.share import Share
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.network.task_network import Need, Resource
from pipesched.problem.passes import (
    BW,
    OFFLOAD,
    ONCE,
    RECOMPUTATIONS,
    RELOAD,
    RESHARD,
    UNSHARD,
    B,
    F,
    PassKind,
    W,
)
from pipesched.problem.placement import Placement
from pipesched.problem.stage import Stage, TaskSpec

# What the task is called that sends a pass's tensor to another device.
SENDING = "transfer"


@dataclass(frozen=True)
class Dependencies:
    """The dependency graph of passes by kind and stage, and the tasks that they are made of.

    `links`, `transfer_stream`, `shared_streams`, `stage_arcs` and `holders` are those of the problem; `walks` are the
    micro-batches of each stage.
    """

    placement: Placement
    stages: tuple[Stage, ...]
    links: tuple[tuple[int, ...], ...]
    transfer_stream: str | None
    shared_streams: tuple[SharedStream, ...]
    stage_arcs: tuple[StageArc, ...] = ()
    walks: tuple[range, ...] = ()
    holders: tuple[int, ...] = ()

    def needs(self, kind: PassKind, stage: int) -> list[Need]:
        """Passes that must have ended before a pass may start. This is the dependency graph, and nothing else is.

        F needs the F of the stage before; B and BW their own F and the gradient that the next stage's backward
        sends, whichever kind that is, and the copy back or the recomputation of the activation if there is one; W its
        B; a copy out and a recomputation their F, a copy back the copy out. F and backwards need besides what arcs
        between stages say. Gradients are reduced after all backwards that compute them, and the step follows that.
        Which gathering of parameters a pass waits for depends on the order (`pipesched.schedule.gathered`).
        """
        if kind in ONCE:
            return self._behind_backwards(kind, stage)
        if kind in (UNSHARD, RESHARD):
            return []
        alone = {W: B, RELOAD: OFFLOAD, OFFLOAD: F, **dict.fromkeys(RECOMPUTATIONS, F)}
        if kind in alone:
            return [Need(((alone[kind], stage),), 0)]
        if kind is F:
            before = self.placement.previous[stage]
            own = [] if before is None else [Need(((F, before),), self.lag(before, stage))]
            return own + self._arcs_into(stage, (F,))
        needs = [Need(((F, stage),), 0), *self._arcs_into(stage, (B, BW))]
        after = self.placement.next[stage]
        if after is not None:
            needs.append(Need(((B, after), (BW, after)), self.lag(after, stage)))
        saving = tuple((kind, stage) for kind in self.stages[stage].saving_kinds if kind is not OFFLOAD)
        if saving:
            needs.append(Need(saving, 0, optional=True))
        return needs

    def _behind_backwards(self, kind: PassKind, stage: int) -> list[Need]:
        """Of a pass that runs once: each part waits for the one before, the first for the last of the pass before."""
        once = self.stages[stage].once
        place = next(place for place, one in enumerate(once) if one.kind is kind)
        parts = once[place].parts
        in_turn = [Need(((kind, stage),), 0, share=Share(range(parts - 1), range(1, parts)))] if parts > 1 else []
        if place:
            before = once[place - 1]
            return [*in_turn, Need(((before.kind, stage),), 0, share=Share((before.parts - 1,), range(1)))]
        return in_turn + [
            Need(((W, one), (BW, one)), 0, share=Share(self.walks[one], (at,)), bucket=(at, parts))
            for at in range(parts)
            for one in self.computing_with(stage)
        ]

    def _arcs_into(self, stage: int, kinds: tuple[PassKind, ...]) -> list[Need]:
        """Passes of other chains that passes of these kinds need."""
        return [
            Need(
                tuple((kind, arc.before) for kind in ((F,) if arc.turns else kinds)),
                self._along(arc),
                share=arc.share(self.walks),
            )
            for arc in self.stage_arcs
            if arc.after == stage and arc.backward == (F not in kinds)
        ]

    def _along(self, arc: StageArc) -> int:
        """Ticks of an arc between chains; no collective joins gradients that no stage needs."""
        if not arc.barrier or (arc.backward and self.stages[arc.after].forward_only):
            return self._travel(arc.before, arc.after, arc.backward)
        return self.stages[arc.before].transfer

    def computing_with(self, stage: int) -> list[int]:
        """The stages that compute with the parameters of this one."""
        holders = self.holders or range(len(self.stages))
        return [one for one, holder in enumerate(holders) if holder == stage]

    def numbers(self, kind: PassKind, stage: int) -> range:
        """The micro-batches that have such a pass; those for parameters are counted from 0 on."""
        gather = self.stages[stage].gather
        if gather is not None and kind in (UNSHARD, RESHARD):
            return range(gather.most)
        once = {one.kind: range(one.parts) for one in self.stages[stage].once}
        return once.get(kind, self.walks[stage])

    def lag(self, sender: int, receiver: int) -> int:
        """Ticks from a pass's end to its tensor's arrival at a neighbour on the chain: activation, or gradient back."""
        return self._travel(sender, receiver, self.placement.next[sender] != receiver)

    def _travel(self, sender: int, receiver: int, gradient: bool) -> int:
        """Ticks between two stages of an activation, or of a gradient, which goes to the stage whose F is first.

        The file's key `transfer` gives either `Stage.transfer` or `links` (pipesched/files/problems/times_in_ticks.py).
        """
        first = self.stages[receiver if gradient else sender]
        one, other = (self.placement.stage_device[stage] for stage in (sender, receiver))
        if one == other or (gradient and first.forward_only):
            return 0
        return first.transfer + (self.links[one][other] if self.links else 0)

    def sends(self, lag: int) -> bool:
        """True if a tensor that takes so long is sent by a task of its own."""
        return lag > 0 and self.transfer_stream is not None

    @cached_property
    def tasks(self) -> dict[tuple[PassKind, int], tuple[TaskSpec, ...]]:
        """Of each kind of pass of each stage, and the task that sends its tensor to another device, if it is one."""
        where, found = self.placement, {}
        for s, stage in enumerate(self.stages):
            for kind in stage.kinds:
                to = where.next[s] if kind is F else where.previous[s] if kind in (B, BW) else None
                lag = 0 if to is None else self.lag(s, to)
                sending = (TaskSpec(str(self.transfer_stream), lag, SENDING),) if self.sends(lag) else ()
                found[kind, s] = (*stage.tasks_of(kind), *sending)
        return found

    def ends_of(self, kind: PassKind, stage: int, bucket: tuple[int, int] | None = None) -> tuple[int, ...]:
        """The parts of a pass after all of which it has ended; a task that sends its tensor on follows them.

        Or those after which the gradients of a bucket are there: as large a share of its tasks.
        """
        own = len(self.stages[stage].tasks_of(kind))
        at, number = bucket or (0, 1)
        parts = range(at * own // number, -(-(at + 1) * own // number))
        return tuple(parts) if kind is W else (parts[-1],)

    def resource(self, device: int, stream: str) -> Resource:
        """The stream of a device; of one that devices share, that of the first of them."""
        for shared, devices in self.shared_streams:
            if shared == stream and device in devices:
                return Resource(devices[0], stream)
        return Resource(device, stream)
