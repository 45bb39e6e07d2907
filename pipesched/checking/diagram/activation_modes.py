"""Argument: the passes of some stages run in some order, each activation in one of its modes.

Stages that are not modelled are delays without limits of memory or streams, with all activations kept: every schedule
stays feasible, and takes no longer. Hosts, and streams shared by devices, are left out.

Micro-batches with the same mode on a stage have the same steps with the same times. So if the n-th micro-batch takes
the role of the n-th of them that runs, all times stay as they are, and it starts no sooner than its predecessors: n of
the same micro-batches had come so far, and so n lower numbers. Likewise a stage's n-th forward waits for the
n-th of the previous stage, and gradients backwards. The memory level depends only on how many have run each step. So a
state is how many have, mode by mode.

Steps are taken by their starts over all devices and streams, and none starts before the last. An offload releases what
it copied when it ends, which is an event by itself; the sooner the better, so one that can be over is. The weight part
of a backward is deferred: as many as memory admits in addition to everything in use. All others have run: the compute
stream was in use for so long, from the start of any of its steps on. The same holds when a reload takes its memory. It
starts after the end of the last step of the compute stream, or while that runs: then memory has what a gradient running
there has, and all weight passes but its own and those deferred end before it does.

With times that are nowhere later nothing that follows is later.

For the makespan time 0 is its start: a chain's first modelled forward waits for the path to it, and the path back
follows its last gradient. For a span time 0 is the start of the first modelled pass on the device. Nothing precedes it
if all stages there are modelled, or if it is the first forward of the only chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from pipesched.checking.coverage import require_covered
from pipesched.checking.diagram.by_state import ByState, Label
from pipesched.checking.diagram.mode_steps import END, FREE, RUN, Orders, State, Times, sum_over
from pipesched.checking.diagram.mode_times import run
from pipesched.checking.diagram.replay import least_end
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.diagram_evidence import Diagram

# What problems may use besides that activations are offloaded or recomputed.
_KNOWN = frozenset(("offload", "recompute", "may_keep", "hosts", "shared_streams"))
_MAX_THRESHOLD = 2**50


def activation_mode_diagram(problem: Problem, evidence: Diagram) -> Ticks:
    """Return the least end, in ticks, of all orders that end before the threshold `evidence.below`.

    The threshold itself, in ticks of the problem, if there are none. Raises `NotCoveredError` for problems with
    overlapped blocks or quantities that the check does not know, or if orders are too many, and `RefusedEvidenceError`
    if the evidence does not fit the problem.
    """
    require_covered(problem, _KNOWN)
    if problem.overlaps:
        raise NotCoveredError("the check does not cover offload and recomputation with overlapped blocks")
    _require(problem, evidence)
    orders = Orders(problem, evidence.stages, evidence.device)
    return least_end(ByState(ActivationModes(orders)), None, evidence.below)


def _require(problem: Problem, evidence: Diagram) -> None:
    """Raise `RefusedEvidenceError` unless the evidence is a diagram with activation modes that bounds the objective."""
    where, stages, device, threshold = problem.placement, evidence.stages, evidence.device, evidence.below
    makespan = problem.objective.from_zero
    kept = [chain for chain in where.chains if set(chain) & set(stages)]
    elsewhere = any(where.stage_device[s] != device for chain in kept for s in chain if s in stages)
    # So time 0 is the start of its first forward.
    from_first = len(kept) == 1 and kept[0][0] in stages and where.stage_device[kept[0][0]] == device
    refused = {
        "stages that are not those of chains, in the order of these": stages
        != tuple(s for chain in where.chains for s in chain if s in stages),
        "no stages": not stages,
        "no micro-batch walks a chain": any(not problem.microbatches_of[chain[0]] for chain in kept),
        "orders that end below nothing": threshold is None or not 0 <= threshold <= _MAX_THRESHOLD,
        "labels that are merged, or a guide": (evidence.width, evidence.rows, evidence.guide) != (None, None, ()),
        "another objective": not makespan and not problem.objective.by_device,
        "the makespan of a device": makespan and device is not None,
        "the span of no device": not makespan and device is None,
        "the span of a device that is not all that is kept, nor of the first stage": not makespan
        and elsewhere
        and not from_first,
    }
    for why, found in refused.items():
        if found:
            raise RefusedEvidenceError(f"{why}: {evidence}")


class ActivationModes:
    """The `StateModel` of orders of the modelled stages' steps with their modes of activations.

    The layer of a state is the number of steps run; labels are rows of times in ticks.
    """

    def __init__(self, orders: Orders) -> None:
        self._orders, self.first, self.last = orders, orders.first, orders.last

    def begin(self) -> Label:
        """Return the label before the first move, in which all times are 0."""
        return self._orders.begin()

    def layer_of(self, state: State) -> int:
        """Return the number of steps that micro-batches have run in a state.

        A micro-batch whose gradient has run counts as five steps in every mode.
        """
        return sum_over(self._orders.rank, state)

    def children(self, state: State, labels: Sequence[Label], threshold: Ticks) -> Iterator[tuple[State, Label, Ticks]]:
        """Yield (new state, times after it, least end) for each label of a state and each move that may end in time.

        Moves after which no order ends before `threshold` ticks are left out.
        """
        orders = self._orders
        moves = [(move, _Left(orders, move.state)) for move in orders.moves(state)]
        cuts = orders.cuts(state)
        for label in labels:
            times = [list(label[start:end]) for start, end in pairwise(cuts)]
            over = min((times[mode.ran][0] for mode in orders.modes if mode.ran and times[mode.ran]), default=None)
            for move, left in moves:
                found = run(orders, times, move, over)
                if found is not None and (end := left.least_end(found)) < threshold:
                    yield move.state, tuple(chain.from_iterable(found)), end


class _Left:
    """The work that a state leaves on each device, in ticks.

    `least_end` bounds the end of all orders that go on from it.
    """

    def __init__(self, orders: Orders, state: State) -> None:
        self._orders = orders
        # By device: whether its end counts, whether it has steps left, their ticks, those of them after gradients.
        self._left = list[tuple[bool, bool, int, int, int]]()
        for device, stages in enumerate(orders.of_device):
            work = later = gradients = 0
            for stage in stages:
                left, begun = sum_over(stage.left, state), stage.number - state[stage.begun]
                gradients += left
                later += left * stage.later
                work += left * stage.times.gradient + begun * (
                    stage.times.forward + min(mode.work[0] for mode in stage.modes)
                )
                work += sum(
                    state[slot] * ticks
                    for mode in stage.modes
                    for slot, ticks in zip(mode.slots, mode.work, strict=True)
                )
            back = min(stage.back for stage in stages)
            self._left.append((orders.owner in (None, device), gradients > 0, work, later, back))

    def least_end(self, times: Times) -> Ticks:
        """Return a lower bound, in ticks, of the end of all orders that continue from these times.

        Also raises the times in place to the latest for which no remaining step runs later.
        """
        orders, found = self._orders, times[END][0]
        free, run = times[FREE], times[RUN]
        for device, (counts, more, work, later, back) in enumerate(self._left):
            if more:
                run[device] = max(run[device], free[device])
                if counts:
                    found = max(found, run[device] + work + later)
                if orders.owner is None:
                    found = max(found, free[device] + work + back)
                continue
            if counts:
                found = times[END][0] = max(found, times[END][0], run[device])
            run[device] = 0
            for stream in orders.streams_of[device]:
                free[stream] = 0
        for queue, waits in enumerate(orders.waiting):
            if waits is not None and times[queue]:
                times[queue] = [max(time, free[waits]) for time in times[queue]]
        for mode in orders.modes:
            stage = orders.stages[mode.stage]
            if times[mode.ready] and (orders.owner in (None, stage.device)):
                tail = stage.later if orders.owner is not None else max(stage.later, stage.back)
                found = max(found, times[mode.ready][-1] + stage.times.gradient + tail)
        return found
