"""The state of an iteration under way: tasks that have begun, and the time from which all others are scheduled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesched.problem.passes import BW, RECOMPUTATIONS, B, F, Pass, PassKind, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MicrobatchId, StageId, Ticks


class Ran(NamedTuple):
    """The start and end of a task in ticks; the end is in the future for a task that is still running."""

    start: Ticks
    end: Ticks


@dataclass(frozen=True)
class State:
    """The state of an iteration at time `now`, in ticks: tasks in `ran` have begun and stay.

    All others start at `now` or later. `recomputed` gives, by stage and micro-batch of begun forwards, the kind of
    recomputation that their activations are for: a forward decides from its beginning what it keeps for its backward.
    Whether an activation is offloaded stays open until its copy begins.
    """

    now: Ticks
    ran: Mapping[Task, Ran]
    recomputed: Mapping[tuple[StageId, MicrobatchId], PassKind] = field(default_factory=dict)

    def finer(self, parts: int) -> State:
        """Return the state in ticks that are `parts` times finer."""
        ran = {task: Ran(one.start * parts, one.end * parts) for task, one in self.ran.items()}
        return State(self.now * parts, ran, self.recomputed)

    def opening(self, problem: Problem, device: DeviceId) -> Ticks | None:
        """Return the start in ticks of the first task of a device; None if none has begun."""
        return min((one.start for task, one in self.ran.items() if problem.device(task.of) == device), default=None)

    def passes(self, problem: Problem) -> frozenset[Pass]:
        """Return the passes that have begun or may still run.

        For a backward not yet begun, B, W and BW, as far as allowed.
        """
        begun = {task.of for task in self.ran}
        over = {p._replace(kind=kind) for p in begun if p.kind is BW for kind in (B, W)}
        over |= {p._replace(kind=BW) for p in begun if p.kind is B}
        for (stage, j), options in self.saving_options(problem).items():
            saving = frozenset(problem.stages[stage].saving_kinds).difference(*options)
            over |= {Pass(kind, stage, j) for kind in saving}
        network = problem.network
        return frozenset(Pass(*of, j) for of in network.tasks for j in network.numbers[of]) - over

    def saving_options(self, problem: Problem) -> dict[tuple[StageId, MicrobatchId], tuple[frozenset[PassKind], ...]]:
        """Return by (stage, micro-batch) the sets of kinds of saving passes that the tasks begun so far still allow.

        Saving passes are copies and recomputations. Exactly one of the sets of a micro-batch runs; the empty set keeps
        the activation. Only stages that may offload or recompute have entries.
        """
        begun: dict[tuple[int, int], set[PassKind]] = {where: {mode} for where, mode in self.recomputed.items()}
        for task in self.ran:
            begun.setdefault(task.of[1:], set()).add(task.of.kind)
        found = {}
        for stage, options in problem.network.options.items():
            for j in problem.microbatches_of[stage]:
                own = begun.get((stage, j), set())
                saving = own.intersection(problem.stages[stage].saving_kinds)
                if own & {B, BW}:
                    options_left = [option for option in options if option == saving]
                elif saving:
                    options_left = [option for option in options if option >= saving]
                else:
                    options_left = [option for option in options if F not in own or not option & set(RECOMPUTATIONS)]
                found[stage, j] = tuple(options_left)
        return found
