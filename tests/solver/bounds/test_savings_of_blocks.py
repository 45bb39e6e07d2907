"""Bounds of problems whose blocks save time by pairs of stages: what they prove."""

from __future__ import annotations

from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from tests.solver.bounds.test_mode_bounds import equal, strongest


def test_savings_that_are_those_of_blocks_by_forward_prove_as_much() -> None:
    """With equal stages a block of F + BW - s is the same either way."""
    one = equal(placement.bidirectional(4), 16, 3, overlapped=24)
    count = len(one.stages)
    other = one.with_stages(blocks=[Blocks(saves=6)] * count)
    for name in ("unpaired passes", "memory and modes"):
        assert strongest(one, name) == strongest(other, name)


def test_stages_of_one_device_save_no_more_than_each_can() -> None:
    """Two stages, 10 + 10 and 30 + 30, whose blocks save 4 and 20: two forwards of 16 run before any backward, so that
    at most 8 x 20 + 6 x 4 of 8 x 80 are saved."""
    where = placement.v_shape(1)
    one = equal(where, 8, None).with_stages(
        forward=[10, 30], backward=[5, 15], weight=[5, 15], fused=[10, 30], blocks=[Blocks(saves=4), Blocks(saves=20)]
    )
    value, _, _ = strongest(one, "unpaired passes")
    assert value == 8 * 80 - 8 * 20 - 6 * 4
