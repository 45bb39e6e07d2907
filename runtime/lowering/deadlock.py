"""Proof of freedom from deadlock: a program ends under any durations, or has a cycle of waits.

A runtime's rules say what each instruction waits for, and no run changes these waits. So a program either has an order
in which everything happens after what it waits for, and then every run of it ends, however fast its devices are; or
some events wait for each other in a cycle, and no run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput, Deadlock
from pipesched.problem.formatting import counted
from pipesched.problem.passes import Pass
from pipesched.problem.quantities import DeviceId
from runtime.lowering.matching import pair_mistakes, unmatched
from runtime.lowering.programs import Compute, Instruction, Program, Receive, Send, Transfer
from runtime.lowering.topological_order import in_order


class Semantics(StrEnum):
    """The rule by which a runtime's sends and receives end; the value is its name in texts.

    `RENDEZVOUS`: both ends block until the other end is there. `POSTED`: a transfer is posted, and passes go on until
    they use its tensor; the transfers of a pair of devices run one at a time, in the order posted. `BUFFERED`: a send
    leaves its tensor and goes on; a receive blocks until the tensor is there. A program that runs to its end under
    rendezvous does so under the other two, which wait for less.
    """

    # Both ends block until the other end is there: DeepSpeed's point-to-point calls, gloo's blocking ones.
    RENDEZVOUS = "rendezvous sends"
    # Both ends are posted and wait for nothing; what is posted between two devices happens one after the other, each
    # end in its order; a pass waits for the tensors it uses: PyTorch's pipeline runtime over NCCL.
    POSTED = "posted sends and receives, one at a time a pair of devices"
    # A send leaves its tensor behind and goes on; a receive blocks until it is there.
    BUFFERED = "buffered sends"


@dataclass(frozen=True)
class Proof:
    """A proof that a program ends: `order` has the names of all events in a topological order of their waits.

    `steps` is the number of events in the longest chain of waits.
    """

    semantics: Semantics
    order: tuple[str, ...]
    steps: int

    def __str__(self) -> str:
        return f"{counted(len(self.order), 'event')} in {counted(self.steps, 'step')} under {self.semantics}"


class _EventGraph:
    """The wait graph of a program: event i is named `names[i]` and waits for the events numbered `before[i]`.

    Events are the instructions of all devices, and the arrival of each transfer.
    """

    def __init__(self, program: Program, semantics: Semantics) -> None:
        self.names: list[str] = []
        self.before: list[list[int]] = []
        self._semantics = semantics
        self._arrived: dict[Transfer, int] = {}  # when the tensor was sent and received
        self._sent: dict[Transfer, int] = {}
        self._computed: dict[Pass, int] = {}
        self._last: dict[tuple[int, int], int] = {}  # the latest transfer between a device and a peer
        for transfer in program.transfers():
            ends = f"device {transfer.source} to {transfer.target}"
            self._arrived[transfer] = self._add(f"transfer {transfer} ({ends})", [])
        for device, row in enumerate(program.rows):
            goes_on_after: list[int] = []
            for step in asking(row, SHORT):
                goes_on_after = [self._step(step, device, goes_on_after)]
        self._tensors(program)

    def _add(self, name: str, before: list[int]) -> int:
        self.names.append(name)
        self.before.append(before)
        return len(self.names) - 1

    def _step(self, step: Instruction, device: DeviceId, before: list[int]) -> int:
        """Add an instruction that waits for the events `before`.

        Return the event for which the device's next one waits.
        """
        number = self._add(f"{step} (device {device})", list(before))
        if isinstance(step, Compute):
            self._computed |= dict.fromkeys(step.passes, number)
            return number
        arrival = self._arrived[step.transfer]
        self.before[arrival].append(number)
        if isinstance(step, Send):
            self._sent[step.transfer] = number
        if self._semantics is Semantics.POSTED:
            peer = step.transfer.target if isinstance(step, Send) else step.transfer.source
            self.before[arrival] += [self._last[device, peer]] if (device, peer) in self._last else []
            self._last[device, peer] = arrival
        blocks = self._semantics is Semantics.RENDEZVOUS or (
            self._semantics is Semantics.BUFFERED and isinstance(step, Receive)
        )
        return arrival if blocks else number

    def _tensors(self, program: Program) -> None:
        """Add the waits of passes for the tensors they use, and of sends for the pass that yields their tensor."""
        for transfer, arrival in self._arrived.items():
            self.before[self._computed[transfer.consumer]].append(arrival)
            self.before[self._sent[transfer]].append(self._computed[transfer.producer])
        problem = program.problem
        for p, number in asking(self._computed.items(), SHORT):
            needs = (before for before, _ in problem.network.predecessors(p, self._computed))
            self.before[number] += [self._computed[q] for q in needs if problem.device(q) == problem.device(p)]


def prove(program: Program, semantics: Semantics) -> Proof:
    """Return the proof that a program ends; raises `Deadlock`, with the cycle of waits, if it does not.

    `BadInput` if a send has no receive, a receive no send, or one of them is on the wrong device.
    """
    alone = list(unmatched(program))
    if alone:
        raise BadInput(*alone)
    events = _EventGraph(program, semantics)
    order = in_order(events.before, lambda number: (number,), lambda number: events.names[number])
    step: dict[int, int] = {}
    for number in asking(order, SHORT):
        step[number] = 1 + max((step[other] for other in events.before[number]), default=0)
    return Proof(semantics, tuple(events.names[number] for number in order), max(step.values(), default=0))


def proved(name: str, program: Program, semantics: Sequence[Semantics] = (Semantics.RENDEZVOUS,)) -> str:
    """Return a clause (`free of deadlock: ...`) that names the rules under which a program was proved to end.

    Raises `BadInput`, whose lines begin with `name`, if transfers do not match or waits form a cycle.
    """
    mistakes = pair_mistakes(program)
    if mistakes:
        raise BadInput(*(f"{name}: {mistake}" for mistake in mistakes))
    try:
        return "free of deadlock: " + "; ".join(str(prove(program, one)) for one in semantics)
    except Deadlock as error:
        raise BadInput(f"{name}: cannot be run to its end: {error}") from None
