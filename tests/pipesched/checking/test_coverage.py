"""Which problems and values the check of bounds understands: a quantity that no argument knows of is never verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from pipesched.checking.attainable import greatest_attainable_below, least_attainable, least_attainable_above
from pipesched.checking.check import check_bound
from pipesched.checking.coverage import require_covered, unknown
from pipesched.checking.finding import NotCoveredError, Verdict
from pipesched.checking.streams.tasks import stream_tasks
from pipesched.problem.blocks import Blocks
from pipesched.problem.features.device_resources import HostPool, SharedStream
from pipesched.problem.features.walks import Walks
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import TaskSpec
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import AroundDevice, Evidence, OnDevice, OnStream, StreamTasks
from tests.support.makers import problem


def even(devices: int, **keys: object) -> Problem:
    """All times are multiples of two ticks: four for a forward, four and two for a backward or six in one go."""
    one = problem(devices, 2, streams=["compute", "comm"], **keys)
    columns = {"forward": 4, "backward": 4, "weight": 2, "fused": 6}
    return one.with_stages(**{name: (ticks,) * len(one.stages) for name, ticks in columns.items()})


def never_split(one: Problem) -> Problem:
    count = len(one.stages)
    return one.with_stages(weight=(None,) * count, backward=(6,) * count)


PLAIN = even(2)
PARTS = (((F, (TaskSpec("compute", 3), TaskSpec("comm", 1))),),) * 2
# Of each quantity a problem that uses it.
OTHERS: dict[str, Problem] = {
    "transfer_stream": replace(PLAIN, resources=replace(PLAIN.resources, transfer_stream="comm")),
    "hosts": replace(PLAIN, resources=replace(PLAIN.resources, hosts=(HostPool(3, (0, 1)),))),
    "shared_streams": replace(
        PLAIN, resources=replace(PLAIN.resources, shared_streams=(SharedStream("comm", (0, 1)),))
    ),
    "scale": replace(PLAIN, walks=Walks(scale=(Fraction(1), Fraction(2)))),
    "tasks": PLAIN.with_stages(tasks=PARTS),
    "offload": PLAIN.with_stages(offload=(Offload(1, 1, "comm", "comm", 1), None)),
    "recompute": PLAIN.with_stages(recompute=((), (Recomputation("again", 2, 0),))),
    "may_keep": PLAIN.with_stages(may_keep=(True, False), recompute=((), (Recomputation("again", 2, 0),))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_quantities_that_no_argument_knows_of_are_not_covered(name: str) -> None:
    one = OTHERS[name]
    assert name in unknown(one)
    with pytest.raises(NotCoveredError, match=r"does not cover problems with \w+"):
        require_covered(one)
    if set(unknown(one)) == {name}:
        with pytest.raises(NotCoveredError, match=name.replace("_", " ")):
            require_covered(one, frozenset({"another"}))
        require_covered(one, frozenset({name, "another"}))


def test_plain_problems_are_covered_and_mixed_streams_are_not() -> None:
    assert unknown(PLAIN) == []
    require_covered(PLAIN)
    require_covered(PLAIN.with_stages(stream=("comm", "comm"), static=(1, 2), blocks=(Blocks(7),) * 2))
    require_covered(replace(PLAIN.with_room((3, None)), links=((0, 2), (2, 0)), walks=Walks((2,), (0, 1))))
    with pytest.raises(NotCoveredError, match="different streams"):
        require_covered(PLAIN.with_stages(stream=("compute", "comm")))


@pytest.mark.parametrize(
    ("columns", "covered"),
    [
        ({}, True),
        ({"fused": (6, 7)}, True),
        ({"fused": (6, 5)}, True),  # one go is shorter than B and W, which stand for it with less of W
        ({"freed": (-1, 0)}, True),  # what B takes of the memory is left out
        ({"blocks": (Blocks(), Blocks(9))}, False),
        ({"tasks": (PARTS[0], (*PARTS[1], (BW, (TaskSpec("comm", 6),))))}, False),  # on another stream
        ({"tasks": (PARTS[0], (*PARTS[1], (BW, (TaskSpec("compute", 4), TaskSpec("compute", 2)))))}, True),
        ({"tasks": (PARTS[0], (*PARTS[1], (BW, (TaskSpec("compute", 4), TaskSpec("compute", 1)))))}, False),
        ({"tasks": (PARTS[0], (*PARTS[1], (BW, (TaskSpec("compute", 2), TaskSpec("compute", 4)))))}, False),
    ],
)
def test_tasks_of_a_stream_are_those_of_split_backwards_unless_one_go_may_be_better(
    columns: dict[str, Sequence[object]], covered: bool
) -> None:
    one = PLAIN.with_room((8, None)).with_stages(**({"tasks": PARTS} | columns))
    evidence = StreamTasks(0, "compute", None, one.tick, 0, 0)
    if covered:
        assert stream_tasks(one, evidence) == 2 * (3 + 4 + 2)
        return
    with pytest.raises(NotCoveredError, match=r"one go|blocks"):
        stream_tasks(one, evidence)


def test_a_quantity_is_known_only_to_the_arguments_that_say_so() -> None:
    loads = [(OnDevice(0), Verdict.NOT_VERIFIED), (OnStream(0, "compute"), Verdict.VERIFIED)]
    for evidence, verdict in loads:
        assert check_bound(OTHERS["tasks"], Certificate("load", 1, "", 0, evidence)).verdict is verdict


def test_unequal_micro_batches_are_checked_as_the_chains_they_are() -> None:
    """Twice the work of one micro-batch and once that of the other: 30 on device 0."""
    one = OTHERS["scale"]
    for value, verdict in ((30, Verdict.VERIFIED), (31, Verdict.REFUSED)):
        assert check_bound(one, Certificate("load", value, "", 0, OnDevice(0))).verdict is verdict


def test_no_time_is_below_zero() -> None:
    for value, verdict in ((-1, Verdict.VERIFIED), (0, Verdict.VERIFIED), (1, Verdict.NOT_VERIFIED)):
        assert check_bound(PLAIN, Certificate("none known", value, "", None, None)).verdict is verdict


@pytest.mark.parametrize(
    ("objective", "kind", "evidence", "value", "verdict"),
    [
        # 4 to device 1 and its 20; back from there 4 to 6.
        (Objective.MAKESPAN, "head and tail", AroundDevice(1, None, False), 26, Verdict.VERIFIED),
        (Objective.MAKESPAN, "head and tail", AroundDevice(1, None, False), 40, Verdict.REFUSED),
        (Objective.PERIOD, "head and tail", AroundDevice(1, None, False), 26, Verdict.NOT_VERIFIED),
        # Each micro-batch is held on device 0 for 18, with room for four. A period may be any fraction: what is proved
        # is not rounded up to a multiple of two ticks.
        (Objective.PERIOD, "memory over time", OnDevice(0), Fraction(9, 2), Verdict.VERIFIED),
        (Objective.PERIOD, "memory over time", OnDevice(0), 5, Verdict.REFUSED),
        (Objective.MAKESPAN, "memory over time", OnDevice(0), Fraction(9, 2), Verdict.NOT_VERIFIED),
        (Objective.PERIOD, "load", OnDevice(0), 10, Verdict.VERIFIED),
        (Objective.PERIOD, "load", OnDevice(0), 11, Verdict.REFUSED),
    ],
)
def test_each_objective_has_arguments_of_its_own(
    objective: Objective, kind: str, evidence: Evidence, value: int | Fraction, verdict: Verdict
) -> None:
    one = replace(PLAIN.with_room((4, 4)), objective=objective)
    assert check_bound(one, Certificate(kind, value, "", None, evidence)).verdict is verdict


def test_a_bound_is_rounded_up_to_what_a_schedule_can_have() -> None:
    """All times are even: a load of 21 is not there, and one of 20 proves 20 alone."""
    for value, verdict in ((20, Verdict.VERIFIED), (21, Verdict.REFUSED), (Fraction(39, 2), Verdict.VERIFIED)):
        assert check_bound(PLAIN, Certificate("load", value, "", 0, OnDevice(0))).verdict is verdict
    found = check_bound(PLAIN, Certificate("load", 22, "", 0, OnDevice(0)))
    assert found.text == "load: the evidence proves 20, and 22 is stated"


@pytest.mark.parametrize(
    ("one", "at_least", "above", "below"),
    [
        # Makespans are multiples of 2; with a link, a block or a transfer of odd length they are any whole number.
        (PLAIN, (9, 10), (10, 12), (10, 8)),
        (PLAIN, (10, 10), (9, 10), (9, 8)),
        (replace(PLAIN, links=((0, 3), (2, 0))), (9, 9), (9, 10), (9, 8)),
        (PLAIN.with_stages(blocks=(Blocks(), Blocks(7))), (9, 9), (9, 10), (9, 8)),
        (PLAIN.with_stages(transfer=(0, 5)), (9, 9), (9, 10), (9, 8)),
        (PLAIN.with_stages(weight=(2, 1)), (9, 9), (9, 10), (9, 8)),
        (PLAIN.with_stages(forward=(4, 1)), (9, 9), (9, 10), (9, 8)),
        (PLAIN.with_stages(backward=(4, 1)), (9, 9), (9, 10), (9, 8)),
        (PLAIN.with_stages(fused=(4, 1)), (9, 9), (9, 10), (9, 8)),
        # Tasks of lengths of their own: nothing is known of what they add up to.
        (PLAIN.with_stages(tasks=PARTS), (9, 9), (9, 10), (9, 8)),
        (
            PLAIN.with_stages(**dict.fromkeys(("forward", "backward", "weight", "fused"), (0, 0))),
            (9, 9),
            (9, 10),
            (9, 8),
        ),
        # A span is a mean of up to two paths, of one where device 0 begins first and ends last.
        (replace(PLAIN, objective=Objective.SPAN), (Fraction(17, 2), 9), (9, 10), (9, 8)),
        (replace(PLAIN, objective=Objective.SPAN), (Fraction(19, 2), 10), (10, 11), (10, 9)),
        (replace(never_split(PLAIN), objective=Objective.SPAN), (9, 10), (10, 12), (10, 8)),
    ],
)
def test_values_that_a_schedule_can_have(
    one: Problem, at_least: tuple[int, int], above: tuple[int, int], below: tuple[int, int]
) -> None:
    assert least_attainable(one, at_least[0]) == at_least[1]
    assert least_attainable_above(one, above[0]) == above[1]
    assert greatest_attainable_below(one, below[0]) == below[1]


def test_spans_are_means_where_either_device_may_begin() -> None:
    both_ways = never_split(even(2, placement="bidirectional", objective="span"))
    assert least_attainable_above(both_ways, 10) == 11
    # Where only one direction has micro-batches, its first device begins first and ends last.
    assert least_attainable_above(replace(both_ways, walks=Walks((2, 0))), 10) == 12
    three = even(3, objective="span")
    assert least_attainable_above(three, 10) == 10 + Fraction(2, 3)
