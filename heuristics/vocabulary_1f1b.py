"""1F1B with vocabulary parallelism: each device runs a part of the output layer between its passes (Vocab-1, Vocab-2).

The orders are those of the authors' Megatron (github.com/sail-sg/VocabularyParallelism, vocab_parallel_schedule.py).
"""

from __future__ import annotations

from typing import NamedTuple

from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.deadline import asking
from pipesched.errors import DoesNotApply
from pipesched.problem.features.module import Module
from pipesched.problem.passes import BW, F, Pass, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule, schedule_of


class _Model(NamedTuple):
    """The stages in pipeline order, the shared output layer (head), and the shared embedding, None without one."""

    chain: tuple[StageId, ...]
    head: Module
    embedding: Module | None


class _Slot(NamedTuple):
    """Position of a device's part of the head in each steady round: before the forward (`before_forward`) or after it.

    `warm_up` is the number of parts that run before the first backward, in addition to one for each barrier.
    """

    before_forward: bool
    warm_up: int


def vocabulary_1f1b(problem: Problem) -> Schedule:
    """Return 1F1B whose i-th of p devices (from 0) runs p-i forwards ahead, and one more for each barrier of the head.

    Between a backward and a forward, or after the forward, each device runs its part of the head: the backward of one
    micro-batch, then the forward of the next, at about the same time on all devices. The parts of an embedding run
    between these: forwards before the first stage needs them, backwards two micro-batches after that stage's. Raises
    `DoesNotApply` unless the head is a module shared by all devices, the trunk has one stage per device, and backwards
    are no shorter than forwards.
    """
    model = _model_of(problem)
    slots = _slots(problem, model.chain)
    orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
    for place, stage in enumerate(model.chain):
        device = problem.placement.stage_device[stage]
        orders[device] = _DeviceOrder(problem, model, device, slots[0].warm_up).run(
            stage, len(slots) - place, slots[place]
        )
    return schedule_of(orders, "vocab-1f1b")


class _DeviceOrder:
    """The order of a device under construction, with its counts of parts of the head and of the embedding.

    `longest` is the largest `warm_up` of any device's slot. `run` builds the order and returns the passes.
    """

    def __init__(self, problem: Problem, model: _Model, device: DeviceId, longest: int) -> None:
        self.problem, self.microbatches, self.longest = problem, problem.walks.shares[0], longest
        self.barriers, self.order = model.head.barriers, list[Pass]()
        self.head, self.parts, self.embedded, self.returned = model.head.first + device, 0, 0, 0
        self.embedding = None if model.embedding is None else model.embedding.first + device

    def run(self, stage: StageId, ahead: int, slot: _Slot) -> list[Pass]:
        """Return the order of the device with this stage.

        `ahead` is the number of stages from it to the end, itself included, `slot` the position of its part of the
        head.
        """
        m = self.microbatches
        forwards = min(ahead, m)
        self._embed(min(self.problem.devices, m) - forwards + 1)
        for j in range(forwards):
            self._embed(1)
            self._add(F, stage, j)
        for barrier in range(self.barriers):
            self._part()
            self._embed(barrier + 1 < self.barriers)
            forwards = self._forward(stage, forwards)
        for _ in range(slot.warm_up):
            self._part()
        for j in asking(range(m)):
            self._add(BW, stage, j)
            if slot.before_forward:
                self._part()
            forwards = self._forward(stage, forwards)
            if not slot.before_forward:
                self._part()
        while self.embedding is not None and self.returned < m:
            self._return()
        if self.barriers == 1:
            self._add(BW, self.head, m - 1)
        return self.order

    def _forward(self, stage: StageId, done: int) -> int:
        """Append forward number `done` of the stage, if there is one left; return the number of forwards then."""
        if done < self.microbatches:
            self._add(F, stage, done)
        return min(done + 1, self.microbatches)

    def _part(self) -> None:
        """Append the head's backward of a micro-batch and forward of the next, then parts of the embedding due.

        With one barrier nothing waits for the last backward, which is appended at the end of the order.
        """
        j, m = self.parts, self.microbatches
        if j > m or (j == m and self.barriers == 1):
            return
        if j:
            self._add(BW, self.head, j - 1)
        if j < m:
            self._add(F, self.head, j)
        self._embed(j >= max(self.longest, 1) + self.barriers - 1)
        if j > self.longest + self.barriers:
            self._return()
        self.parts += 1

    def _embed(self, count: int) -> None:
        """Append up to `count` more forwards of the device's part of the embedding; nothing without one."""
        if self.embedding is not None:
            until = min(self.embedded + count, self.microbatches)
            for j in range(self.embedded, until):
                self._add(F, self.embedding, j)
            self.embedded = until

    def _return(self) -> None:
        """Append the next backward of the embedding; nothing without one."""
        if self.embedding is not None:
            self._add(BW, self.embedding, self.returned)
            self.returned += 1

    def _add(self, kind: PassKind, stage: StageId, place: int) -> None:
        self.order.append(Pass(kind, stage, self.problem.microbatches_of[stage][place]))


def _slots(problem: Problem, chain: tuple[StageId, ...]) -> list[_Slot]:
    """Return the head's slot on each device in pipeline order, such that neighbours run its parts at the same time.

    Raises `DoesNotApply` if backwards are shorter than forwards.
    """
    forward, backward = (max(problem.duration(Pass(kind, s, 0)) for s in chain) for kind in (F, BW))
    if backward < forward:
        raise DoesNotApply("needs backwards no shorter than forwards")
    slots, offset = [_Slot(True, 0)], 0  # of the last device; how much earlier a part starts than after its backward
    while len(slots) < len(chain):
        before, warm_up = slots[-1]
        follows = offset - forward >= -backward
        if before and follows:
            offset -= forward
        elif not before:
            offset += backward - forward
        slots.append(_Slot(not before or follows, warm_up + before))
    return slots[::-1]


def _model_of(problem: Problem) -> _Model:
    """Return the chain of stages, the shared output layer and the shared embedding (None if there is none).

    Raises `DoesNotApply` unless there is one stage per device, an output layer with a part on each device, and at most
    an embedding likewise.
    """
    where, modules = problem.placement, problem.chain_arcs.modules
    heads = [one for one in modules if one.shared and one.barriers]
    embeddings = [one for one in modules if one.shared and not one.barriers and one.feeds == where.chains[0][:1]]
    if len(heads) != 1 or len(embeddings) > 1 or len(heads) + len(embeddings) < len(modules):
        raise DoesNotApply("needs modules: an output layer of shared placement, and at most an embedding of the same")
    chain = where.chains[0]
    if sorted(where.stage_device[stage] for stage in chain) != list(range(problem.devices)):
        raise DoesNotApply(f"needs one stage on each device; the placement is {where.name}")
    return _Model(chain, heads[0], embeddings[0] if embeddings else None)


def _closed_form(problem: Problem) -> ClosedForm | None:
    """Return peaks and, for equal stages and parts and free transfers, makespan.

    The makespan is left out, too, with two barriers if both passes of a part take less time than a forward. None with
    an embedding, or other modules.
    """
    try:
        chain, head, embedding = _model_of(problem)
    except DoesNotApply:
        return None
    if embedding is not None:
        return None
    m, in_flight, peak = problem.walks.shares[0], problem.network.memory_in_flight, [0] * problem.devices
    for place, stage in enumerate(chain):
        device = problem.placement.stage_device[stage]
        peak[device] = min(m, len(chain) - place + head.barriers) * in_flight[stage] + in_flight[head.first + device]
    parts = range(head.first, head.first + problem.devices)
    times = {tuple(problem.duration(Pass(kind, s, 0)) for kind in (F, BW)) for s in chain}
    of_parts = {tuple(problem.duration(Pass(kind, s, 0)) for kind in (F, BW)) for s in parts}
    if len(times) > 1 or len(of_parts) > 1 or any(s.transfer for s in problem.stages) or any(map(any, problem.links)):
        return ClosedForm(peak=tuple(peak))
    (forward, backward), (own, returned) = *times, *of_parts
    if head.barriers == 2 and own + returned < forward:
        return ClosedForm(peak=tuple(peak))
    makespan = m * (forward + backward + own + returned) + (problem.devices - 1) * (forward + backward)
    return ClosedForm(makespan=makespan, peak=tuple(peak))


HEURISTICS.register(
    Heuristic(
        name="vocab-1f1b",
        reference="Yeung et al., Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288",
        needs="modules: an output layer of shared placement, with b = 2 barriers (Vocab-1) or 1 (Vocab-2)",
        bubble="(p-1)(F+BW) of the stages, as 1F1B (b = 2: if the output layer takes F or more a device)",
        peak="min(m, p-i+b) on the i-th device, and one of the output layer's parts",
        order=vocabulary_1f1b,
        closed_form=_closed_form,
    )
)
