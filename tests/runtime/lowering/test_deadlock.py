"""The proof that programs end: how long its longest chain is under each rule, and the circles that it finds."""

from __future__ import annotations

import pytest

from pipesched.errors import BadInput
from pipesched.problem.passes import F, Pass
from pipesched.simulation.simulator import simulate
from runtime.lowering.deadlock import Semantics, prove, proved
from runtime.lowering.programs import Compute, Program, Send, Transfer, lower
from tests.support.makers import FULL, problem, schedule


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
