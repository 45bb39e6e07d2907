"""Precedence of passes: the tasks of every pass, and the passes it waits for. Nothing else defines precedence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pipesched.problem.features import saved_activations
from pipesched.problem.features.chain_arcs import NO_ARCS, ChainArcs
from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.features.parameters import OWN_PARAMETERS, StageParameters, numbers
from pipesched.problem.network.task_network import Need, PassType
from pipesched.problem.passes import (
    BW,
    OF_PARAMETERS,
    SAVING,
    B,
    F,
    PassKind,
    W,
)
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import StageId, TaskPart, Ticks
from pipesched.problem.stage import Stage, TaskSpec, gradient_lag


@dataclass(frozen=True)
class Dependencies:
    """The tasks of every kind of pass of every stage, and the passes that each waits for.

    `links`, `resources`, `chain_arcs` and `parameters` are the problem's; `walks` are the micro-batches of each stage.
    """

    placement: Placement
    stages: tuple[Stage, ...]
    links: tuple[tuple[Ticks, ...], ...]
    resources: DeviceResources
    chain_arcs: ChainArcs = NO_ARCS
    walks: tuple[range, ...] = ()
    parameters: StageParameters = OWN_PARAMETERS

    def needs(self, kind: PassKind, stage: StageId) -> list[Need]:
        """Return the passes that must have ended before a pass of this kind on this stage may start.

        F needs the F of the stage before. B and BW need their own F, the gradient of the next stage's backward (B or
        BW), and the copy back or the recomputation of the activation, if there is one. W needs its B; a copy out and a
        recomputation their F; a copy back the copy out. In addition come the arcs between chains, and the needs of
        passes for parameters.
        """
        if kind in OF_PARAMETERS:
            return [*self.parameters.needs(kind, stage, self.stages, self.walks)]
        if kind in SAVING:
            return saved_activations.needs(kind, stage)
        if kind is W:
            return [Need(((B, stage),), 0)]
        if kind is F:
            before = self.placement.previous[stage]
            own = [] if before is None else [Need(((F, before),), self.lag(before, stage))]
            return [*own, *self._arcs_into(stage, (F,))]
        needs = [Need(((F, stage),), 0), *self._arcs_into(stage, (B, BW))]
        after = self.placement.next[stage]
        if after is not None:
            needs.append(Need(((B, after), (BW, after)), self.lag(after, stage)))
        if self.stages[stage].saving_kinds:
            needs.append(saved_activations.need_of_backward(stage, self.stages[stage]))
        return needs

    def _arcs_into(self, stage: StageId, kinds: tuple[PassKind, ...]) -> Iterable[Need]:
        """Return the passes of other chains that passes of these kinds of a stage need."""
        arcs = self.chain_arcs
        return arcs.needs(stage, kinds, self.stages, self.walks, self._travel) if arcs.arcs else ()

    def numbers(self, kind: PassKind, stage: StageId) -> range:
        """Return the micro-batches with a pass of this kind on the stage; passes for parameters are numbered from 0."""
        return numbers(self.stages[stage], kind, self.walks[stage]) if kind in OF_PARAMETERS else self.walks[stage]

    def lag(self, sender: StageId, receiver: StageId) -> Ticks:
        """Return the ticks from a pass's end to the arrival of its tensor at a neighbour on the chain.

        The tensor is an activation if `receiver` follows `sender` on the chain, else a gradient.
        """
        return self._travel(sender, receiver, self.placement.next[sender] != receiver)

    def _travel(self, sender: StageId, receiver: StageId, gradient: bool) -> Ticks:
        """Return the ticks that an activation, or a gradient, travels from stage `sender` to `receiver`.

        0 on one device. 0 also for a gradient to a stage before all that train, which gets none. The time is the
        stage's own, that of the stage whose F is first, plus that between the devices (`links`).
        """
        first = self.stages[receiver if gradient else sender]
        one, other = (self.placement.stage_device[stage] for stage in (sender, receiver))
        if one == other:
            return 0
        ticks = first.transfer + (self.links[one][other] if self.links else 0)
        return gradient_lag(first, ticks) if gradient else ticks

    @cached_property
    def _own_tasks(self) -> dict[PassType, tuple[TaskSpec, ...]]:
        """The tasks of each kind of pass of each stage, without the task that sends its tensor."""
        return {(kind, s): own for s, stage in enumerate(self.stages) for kind, own in stage.tasks_by_kind.items()}

    @cached_property
    def tasks(self) -> dict[PassType, tuple[TaskSpec, ...]]:
        """The tasks of each kind of pass of each stage.

        The task that sends its tensor is the last, if transfers are tasks.
        """
        found = {**self._own_tasks}
        if self.resources.transfer_stream is not None:
            for kind, s in found:
                to = self.placement.next[s] if kind is F else self.placement.previous[s] if kind in (B, BW) else None
                found[kind, s] += () if to is None else self.resources.sending(self.lag(s, to))
        return found

    def ends_of(self, kind: PassKind, stage: StageId, bucket: tuple[int, int] | None = None) -> tuple[TaskPart, ...]:
        """Return the indices of the tasks after which a pass has ended; a task that sends its tensor follows them.

        For W they are all of its tasks, for any other pass the last one. With `bucket`, a pair (index, number of
        buckets), they are the tasks after which the gradients of that bucket are complete: each bucket gets an equal
        share of the tasks.
        """
        known, asked = self._known_ends, (kind, stage, bucket)
        if asked not in known:
            own = len(self._own_tasks[kind, stage])
            at, number = bucket or (0, 1)
            parts = range(at * own // number, -(-(at + 1) * own // number))
            known[asked] = tuple(parts) if kind is W else (parts[-1],)
        return known[asked]

    @cached_property
    def _known_ends(self) -> dict[tuple[PassKind, StageId, tuple[int, int] | None], tuple[TaskPart, ...]]:
        return {}
