"""The proof that programs end: how long its longest chain is under each rule, and the circles that it finds."""

from __future__ import annotations

import pytest

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.simulation.simulator import simulate
from runtime.lowering.deadlock import Semantics, prove, proved
from runtime.lowering.programs import Compute, Program, Receive, Send, Transfer, lower
from tests.support.makers import FULL, problem, schedule

every = pytest.mark.parametrize("semantics", Semantics)


def test_the_longest_chain_of_one_micro_batch_is_all_that_happens_but_the_receives() -> None:
    one = problem(2, 1, times=FULL)
    program = lower(simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0")))
    for semantics in Semantics:
        proof = prove(program, semantics)
        # F0, send, transfer, F1, BW1, send, transfer, BW0; two receives beside them.
        assert (len(proof.order), proof.steps) == (10, 8)
        places = [proof.order.index(name) for name in ("F0.0 (device 0)", "F1.0 (device 1)", "BW0.0 (device 0)")]
        assert places == sorted(places)
        assert str(proof) == f"10 events in 8 steps under {semantics}"


@pytest.mark.parametrize(
    ("semantics", "steps"),
    [
        # Two forwards; send, transfer; send, transfer; two forwards.
        (Semantics.RENDEZVOUS, 8),
        # Two forwards; two sends at once, or a send and its transfer; the second transfer; the last forward.
        (Semantics.POSTED, 6),
        # Two forwards; send, transfer; the second receive, its transfer; two forwards.
        (Semantics.BUFFERED, 8),
    ],
)
def test_an_end_that_blocks_makes_the_chain_longer(semantics: Semantics, steps: int) -> None:
    one = problem(2, 2, times=FULL)
    first, second = (Transfer(Pass(F, 0, j), Pass(F, 1, j), 0, 1) for j in range(2))
    forward = [Compute((Pass(F, 0, j),)) for j in range(2)]
    program = Program(
        one,
        (
            (*forward, Send(first), Send(second)),
            (Receive(first), Receive(second), *(Compute((Pass(F, 1, j),)) for j in range(2))),
        ),
    )
    assert prove(program, semantics).steps == steps


def around() -> Program:
    """Stages on devices 0, 1, 2, 0: device 0 posts the receive from device 2 before it sends to device 1."""
    one = problem(3, 1, placement=[0, 1, 2, 0], times=FULL)
    first, second, third = (Transfer(Pass(F, s, 0), Pass(F, s + 1, 0), s, (s + 1) % 3) for s in range(3))
    runs = [Compute((Pass(F, stage, 0),)) for stage in range(4)]
    return Program(
        one,
        (
            (Receive(third), runs[0], Send(first), runs[3]),
            (Receive(first), runs[1], Send(second)),
            (Receive(second), runs[2], Send(third)),
        ),
    )


def test_what_is_posted_waits_for_nothing_that_is_posted_with_another_device() -> None:
    """The receive; a forward, its send and its transfer three times; the last forward."""
    assert prove(around(), Semantics.POSTED).steps == 11
    with pytest.raises(Deadlock):
        prove(around(), Semantics.RENDEZVOUS)


def crossed() -> Program:
    """Device 0 sends the first micro-batch first, device 1 receives it last."""
    one = problem(2, 2, times=FULL)
    first, second = (Transfer(Pass(F, 0, j), Pass(F, 1, j), 0, 1) for j in range(2))
    here = (Compute((Pass(F, 0, 0),)), Compute((Pass(F, 0, 1),)), Send(first), Send(second))
    there = (Receive(second), Receive(first), Compute((Pass(F, 1, 0),)), Compute((Pass(F, 1, 1),)))
    return Program(one, (here, there))


def test_sends_that_leave_their_tensor_behind_end_in_any_order_of_receives() -> None:
    """Two forwards, two sends, the second transfer; the other receive, its transfer; two forwards."""
    assert prove(crossed(), Semantics.BUFFERED).steps == 9


@pytest.mark.parametrize("semantics", (Semantics.RENDEZVOUS, Semantics.POSTED))
def test_receives_in_another_order_than_the_sends_wait_in_a_circle(semantics: Semantics) -> None:
    with pytest.raises(Deadlock, match=r"F0\.0->F1\.0"):
        prove(crossed(), semantics)


@every
def test_a_pass_waits_for_its_own_device_s_passes_too(semantics: Semantics) -> None:
    """A backward before its forward on the same device waits for it, and the forward for the device to go on."""
    one = problem(1, 1, times=FULL)
    backward_first = Program(one, ((Compute((Pass(BW, 0, 0),)), Compute((Pass(F, 0, 0),))),))
    with pytest.raises(Deadlock):
        prove(backward_first, semantics)
    right = Program(one, ((Compute((Pass(F, 0, 0),)), Compute((Pass(BW, 0, 0),))),))
    assert prove(right, semantics).steps == 2


@every
def test_a_full_backward_waits_for_that_of_the_next_stage_on_its_device(semantics: Semantics) -> None:
    one = problem(1, 1, placement=[0, 0], times=FULL)
    forwards = [Compute((Pass(F, stage, 0),)) for stage in (0, 1)]
    near, far = (Compute((Pass(BW, stage, 0),)) for stage in (0, 1))
    assert prove(Program(one, ((*forwards, far, near),)), semantics).steps == 4
    with pytest.raises(Deadlock):
        prove(Program(one, ((*forwards, near, far),)), semantics)


@every
def test_a_split_backward_waits_for_that_of_the_next_stage_on_its_device(semantics: Semantics) -> None:
    one = problem(1, 1, placement=[0, 0])
    row = [Compute((Pass(kind, stage, 0),)) for kind, stage in ((F, 0), (F, 1), (B, 1), (B, 0), (W, 1), (W, 0))]
    assert prove(Program(one, (tuple(row),)), semantics).steps == 6
    row[2], row[3] = row[3], row[2]
    with pytest.raises(Deadlock):
        prove(Program(one, (tuple(row),)), semantics)


@every
def test_nothing_to_do_takes_no_step(semantics: Semantics) -> None:
    assert prove(Program(problem(1, 1, times=FULL), ((),)), semantics).steps == 0


def test_an_end_that_stands_alone_is_a_mistake() -> None:
    one = problem(2, 1, times=FULL)
    lone = Send(Transfer(Pass(F, 0, 0), Pass(F, 1, 0), 0, 1))
    program = Program(one, ((Compute((Pass(F, 0, 0),)), lone), (Compute((Pass(F, 1, 0),)),)))
    with pytest.raises(BadInput, match="RECV"):
        prove(program, Semantics.RENDEZVOUS)
    with pytest.raises(BadInput, match="a program: RECV"):
        proved("a program", program)


def test_one_sentence_says_under_which_rules_a_program_ends() -> None:
    one = problem(2, 1, times=FULL)
    program = lower(simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0")))
    said = proved("a program", program, tuple(Semantics))
    assert said.startswith("free of deadlock: ")
    assert all(semantics in said for semantics in Semantics)
