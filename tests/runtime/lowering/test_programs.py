"""Lowered programs: both ends of every transfer agree, and a machine that shares no code with the proof runs them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.lowering.deadlock import Semantics, prove, proved
from runtime.lowering.matching import pair_mistakes
from runtime.lowering.programs import Compute, Instruction, Program, Receive, Receives, Send, Transfer, lower
from tests.support.daily import DAY
from tests.support.in_turn import in_turn
from tests.support.makers import problem, random_order, schedule

PLACEMENTS: list[tuple[int, dict[str, object]]] = [
    (1, {"placement": [0, 0, 0]}),
    (2, {"placement": "linear"}),
    (4, {"placement": "linear"}),
    (3, {"placement": "v-shape"}),
    (2, {"placement": "wave", "chunks": 3}),
    (3, {"placement": "interleaved", "chunks": 2}),
    (2, {"placement": "bidirectional"}),
    (4, {"placement": "bidirectional"}),
    (3, {"placement": [0, 1, 1, 0, 2, 0]}),
    (3, {"placement": [2, 0, 1]}),
    (4, {"placement": [3, 1, 3, 0, 2, 0, 1]}),
]


def of_day(draws: int) -> range:
    """So many seeds, others on each day."""
    return range(DAY * draws, (DAY + 1) * draws)


def drawn_timeline(rng: Random) -> Timeline:
    """A random order of a random problem; durations of 0 give many events at one instant."""
    devices, placed = rng.choice(PLACEMENTS)
    times: dict[str, object] = {each: rng.randint(0, 3) for each in ("forward", "backward", "weight", "transfer")}
    if rng.random() < 0.5:
        times["overlapped"] = rng.randint(1, 6)
    one = problem(devices, rng.randint(2, 5), times=times, **placed)
    return simulate(one, random_order(one, rng, pairs=0.5))


class Machine:
    """Devices that run their rows; what can happen, happens, in an order that `rng` picks."""

    def __init__(self, program: Program, semantics: Semantics, rng: Random) -> None:
        self.program, self.semantics, self.rng = program, semantics, rng
        self.at = [0] * len(program.rows)
        self.held: set[tuple[Pass, int]] = set()  # what a device can read
        self.posted: dict[tuple[int, int], list[Transfer]] = {}
        self.sent: set[Transfer] = set()

    def run(self) -> bool:
        """Whether every row ends and every tensor arrives."""
        devices = list(range(len(self.at)))
        moved = True
        while moved:
            self.rng.shuffle(devices)
            moved = any([self.step(device) for device in devices] + [self.deliver()])
        ended = all(at == len(row) for at, row in zip(self.at, self.program.rows, strict=True))
        return ended and not any(self.posted.values())

    def head(self, device: int) -> Instruction | None:
        row = self.program.rows[device]
        return row[self.at[device]] if self.at[device] < len(row) else None

    def step(self, device: int) -> bool:
        step = self.head(device)
        if step is None or not self.may(step, device):
            return False
        self.at[device] += 1
        return True

    def may(self, step: Instruction, device: int) -> bool:
        """Whether it can run now; if so it does."""
        if isinstance(step, Compute):
            return self.compute(step, device)
        if isinstance(step, Send) and (step.transfer.producer, device) not in self.held:
            return False
        transfer = step.transfer
        if self.semantics is Semantics.POSTED:
            peer = transfer.target if isinstance(step, Send) else transfer.source
            self.posted.setdefault((device, peer), []).append(transfer)
            return True
        if self.semantics is Semantics.BUFFERED:
            if isinstance(step, Send):
                self.sent.add(transfer)
                return True
            if transfer in self.sent:
                self.held.add((transfer.producer, device))
                return True
            return False
        if isinstance(step, Receive) or self.head(transfer.target) != Receive(transfer):
            return False  # the sender moves both
        self.held.add((transfer.producer, transfer.target))
        self.at[transfer.target] += 1
        return True

    def compute(self, step: Compute, device: int) -> bool:
        problem = self.program.problem
        computes = (one for row in self.program.rows for one in row if isinstance(one, Compute))
        held = {p for one in computes for p in one.passes}
        needs = [before for p in step.passes for before, _ in problem.network.predecessors(p, held)]
        if any((before, device) not in self.held for before in needs):
            return False
        self.held |= {(p, device) for p in step.passes}
        return True

    def deliver(self) -> bool:
        """Under POSTED: one transfer that is first in line at both of its ends."""
        for (device, peer), queue in self.posted.items():
            other = self.posted.get((peer, device), [])
            if queue and other and queue[0] == other[0]:
                transfer = queue.pop(0)
                other.pop(0)
                self.held.add((transfer.producer, transfer.target))
                return True
        return False


@in_turn("seed", of_day(40))
def test_both_ends_agree_and_nothing_is_missing(seed: int) -> None:
    rng = Random(seed)
    timeline, receives = drawn_timeline(rng), rng.choice([*Receives])
    program = lower(timeline, receives)
    assert pair_mistakes(program) == []
    assert lower(timeline, receives) == program
    ends: dict[frozenset[int], dict[int, list[Transfer]]] = {}
    sent: dict[tuple[int, int], list[Transfer]] = {}
    received: dict[tuple[int, int], list[Transfer]] = {}
    for device, row in enumerate(program.rows):
        for step in row:
            if isinstance(step, Compute):
                continue
            t = step.transfer
            assert t.source != t.target
            assert device == (t.source if isinstance(step, Send) else t.target)
            ends.setdefault(frozenset((t.source, t.target)), {}).setdefault(device, []).append(t)
            (sent if isinstance(step, Send) else received).setdefault((t.source, t.target), []).append(t)
    assert sent == received
    for both in ends.values():
        one, other = both.values()
        assert one == other
    # every hand-over between two devices, counted without `needs`: one each way for each pair of neighbours on a chain
    one = timeline.problem
    crossings = sum(
        one.placement.stage_device[a] != one.placement.stage_device[b]
        for j in range(one.microbatches)
        for a, b in zip(one.chain_of(j), one.chain_of(j)[1:], strict=False)
    )
    assert sum(1 for _ in program.transfers()) == 2 * crossings


@in_turn("seed", of_day(60))
def test_the_passes_of_a_device_keep_their_order(seed: int) -> None:
    rng = Random(seed)
    timeline, receives = drawn_timeline(rng), rng.choice([*Receives])
    for device, row in enumerate(lower(timeline, receives).rows):
        passes = [p for step in row if isinstance(step, Compute) for p in step.passes]
        assert passes == list(timeline.schedule.passes_on(device))


@in_turn("seed", of_day(40))
def test_a_lowered_program_ends_under_every_semantics(seed: int) -> None:
    rng = Random(seed)
    program, semantics = lower(drawn_timeline(rng), rng.choice([*Receives])), rng.choice([*Semantics])
    assert Machine(program, semantics, rng).run()
    proof = prove(program, semantics)
    assert len(set(proof.order)) == len(proof.order)
    assert 0 < proof.steps <= len(proof.order)


@in_turn("seed", of_day(60))
def test_the_proof_and_the_machine_agree_on_broken_programs(seed: int) -> None:
    """Instructions of a row exchanged at random: some programs still end, some hang, and both judges say the same."""
    rng = Random(seed)
    timeline, semantics = drawn_timeline(rng), rng.choice([*Semantics])
    rows = [list(row) for row in lower(timeline).rows]
    for _ in range(rng.randint(1, 3)):
        row = rng.choice([row for row in rows if len(row) > 1])
        at = rng.randrange(len(row) - 1)
        row[at], row[at + 1] = row[at + 1], row[at]
    program = Program(timeline.problem, tuple(map(tuple, rows)))
    try:
        prove(program, semantics)
        ends = True
    except Deadlock as error:
        ends = False
        assert len(error.cycle) >= 1
    assert Machine(program, semantics, Random(1)).run() == ends


def two_devices() -> Timeline:
    return simulate(
        problem(2, 2, times={"forward": 1, "backward": 2}), schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")
    )


def exchanged(program: Program, device: int, one: str, other: str) -> Program:
    """Two instructions of a device in each other's place."""
    row = list(program.rows[device])
    words = list(map(str, row))
    a, b = words.index(one), words.index(other)
    row[a], row[b] = row[b], row[a]
    return replace(program, rows=tuple(tuple(row) if d == device else r for d, r in enumerate(program.rows)))


def test_a_circle_is_refused_and_named() -> None:
    """Device 1 receives F0.1 before it sends the gradient that device 0 takes first: blocking ends wait for ever."""
    program = lower(two_devices())
    crossed = exchanged(program, 0, "SEND F0.1->F1.1 to device 1", "RECV BW1.0->BW0.0 from device 1")
    with pytest.raises(Deadlock) as caught:
        prove(crossed, Semantics.RENDEZVOUS)
    cycle = list(caught.value.cycle)
    waits = set(zip(cycle, cycle[1:] + cycle[:1], strict=True))
    assert ("SEND F0.1->F1.1 to device 1 (device 0)", "transfer BW1.0->BW0.0 (device 1 to 0)") in waits
    assert ("F1.0 (device 1)", "transfer F0.1->F1.1 (device 0 to 1)") in waits
    with pytest.raises(
        BadInput, match=r"transfer 1 between devices 0 and 1 is BW1\.0->BW0\.0 on device 0 and F0\.1->F1"
    ):
        proved("mine", crossed)


def test_what_is_wrong_with_the_ends_is_named() -> None:
    program = lower(two_devices())
    without = replace(program, rows=(program.rows[0], tuple(s for s in program.rows[1] if "RECV F0.1" not in str(s))))
    (mistake,) = pair_mistakes(without)
    assert mistake.startswith("RECV F0.1->F1.1 ")
    with pytest.raises(BadInput, match="is on no device"):
        prove(without, Semantics.POSTED)
    neither = replace(program, rows=tuple(tuple(s for s in row if " F0.1->" not in str(s)) for row in program.rows))
    (mistake,) = pair_mistakes(neither)
    assert mistake.startswith("F1.1 needs what F0.1 yields")
    home = Transfer(Pass(F, 0, 0), Pass(BW, 0, 0), 0, 0)
    inside = replace(program, rows=((*program.rows[0], Send(home), Receive(home)), program.rows[1]))
    assert "from device 0 to itself" in pair_mistakes(inside)[0]


def test_where_receives_stand() -> None:
    """F0.1 leaves while device 1 runs F1.0: posted, its receive stands before; blocking, after."""
    one: Problem = problem(2, 2, times={"forward": [2, 5], "backward": 2, "transfer": 1})
    timeline = simulate(one, schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1"))
    early, late = ([str(s) for s in lower(timeline, receives).rows[1]] for receives in Receives)
    receive = "RECV F0.1->F1.1 from device 0"
    assert early.index(receive) < early.index("F1.0")
    assert late.index("BW1.0") < late.index(receive) < late.index("F1.1")
