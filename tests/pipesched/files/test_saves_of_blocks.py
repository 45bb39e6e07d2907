"""Blocks by what they save: the key `times.overlapped.saves`, its mistakes, and the file of a problem that has it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipesched import BadInput, Problem, problem_from
from pipesched.files.problems.document import problem_document
from pipesched.sweeps.same_model import with_same_model

TIMES = {"forward": [4, 6], "backward": [3, 5], "weight": [2, 3], "overlapped": {"saves": [2, 5]}}


def problem(**times: object) -> Problem:
    return problem_from({"devices": 1, "microbatches": 3, "placement": [0, 0], "times": TIMES | times})


def test_a_block_saves_what_the_stage_that_saves_less_does() -> None:
    own = problem()
    assert own.tick == 1
    assert dict(own.network.blocks) == {(0, 0): 7, (0, 1): 10, (1, 0): 9, (1, 1): 9}
    assert own.pipeline.saved_by_block(0, 1) == own.pipeline.saved_by_block(1, 0) == 2
    assert (own.pipeline.least_block_of_forward(1), own.pipeline.least_block_of_backward(1)) == (9, 9)
    assert own.without_blocks().network.blocks == {} and not own.without_blocks().overlaps


def test_one_number_is_that_of_all_stages_and_half_a_list_of_both_directions() -> None:
    assert [stage.blocks.saves for stage in problem(overlapped={"saves": 2}, forward=4).stages] == [2, 2]
    both = {"devices": 2, "microbatches": 4, "placement": "bidirectional", "times": TIMES}
    assert [stage.blocks.saves for stage in problem_from(both).stages] == [2, 5, 2, 5]


@pytest.mark.parametrize(
    ("times", "line"),
    [
        ({"overlapped": {"saves": [2, 7]}}, r"times\.overlapped\.saves\[1\]: found 7; allowed: at most the forward, 6"),
        (
            {"overlapped": {"saves": 6}, "forward": 9},
            r"times\.overlapped\.saves: found 6; allowed: at most the full backward, 5",
        ),
        (
            {"overlapped": {"saves": [2, 5]}, "fused": [4, 4]},
            r"times\.overlapped\.saves\[1\]: found 5; allowed: at most the full backward, 4",
        ),
        ({"overlapped": {"saves": [1, 2, 3]}}, r"times\.overlapped\.saves: found 3 values; allowed: one number, or a"),
        ({"overlapped": {"saves": -1}}, r"times\.overlapped\.saves: found -1; allowed: a number of at least 0"),
        ({"overlapped": {"saved": 1}}, r"times\.overlapped\.saved: found 1; allowed: no key but saves"),
    ],
)
def test_mistakes_name_the_key_and_what_is_allowed(times: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput, match=line):
        problem(**times)


def test_rounded_times_make_no_block_shorter_than_a_pass() -> None:
    """Times of 19 digits are rounded to what can be added up: a saving that is all of a pass is still no more."""
    third = Decimal("1.3333333333333333337")
    own = problem(forward=third, backward=Decimal("0.6666666666666666668"), weight=third, overlapped={"saves": third})
    assert own.notes
    for stage in own.stages:
        assert stage.blocks.saves is not None and stage.blocks.saves <= min(stage.forward, stage.fused)


def test_the_file_of_a_problem_reads_back_as_it_is() -> None:
    own = problem(overlapped={"saves": ["4/3", 2]})
    document = problem_document(own)
    assert document["times"]["overlapped"] == {"saves": ["4/3", 2]}
    assert problem_from(document) == own


def test_stages_cut_in_two_save_half_each() -> None:
    document = {"devices": 2, "microbatches": 2, "times": {"forward": 4, "backward": 6, "overlapped": {"saves": 3}}}
    changed = document | {"devices": 4, "times": dict(document["times"])}  # type: ignore[call-overload]
    with_same_model(document, changed)
    assert str(changed["times"]["overlapped"]["saves"]) == "1.5"  # type: ignore[index]
