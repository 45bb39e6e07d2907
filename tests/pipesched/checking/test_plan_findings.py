"""What the check finds of a bound over plans: by hand-written evidence, without a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from pipesched.checking.finding import Finding, Verdict
from pipesched.checking.plan_check import check_plan_bound, mean_load, weakest
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice
from pipesched.results.plan import ChoiceResult
from pipesched.results.plan_evidence import (
    AllOrders,
    AllPartitions,
    MeanLoad,
    OrderPaths,
    PlanEvidence,
    SolvedPartition,
    TooManyStages,
)

LAYER: Mapping[str, object] = {"name": "layer", "count": 8, "forward": 1, "backward": 1}


def plan(layer: Mapping[str, object] = LAYER, **keys: object) -> PlanProblem:
    """Two devices, four micro-batches of eight layers: 32 on each device at least."""
    return plan_problem_from({"devices": 2, "microbatches": 4, "placement": "linear", "layers": [dict(layer)]} | keys)


def found(one: PlanProblem, evidence: PlanEvidence | None, bound: int, lower: int | None = None) -> Finding:
    """Of the only placement, of which so much is said, or the bound."""
    (choice,) = one.choices
    said = ChoiceResult(choice, Fraction(bound if lower is None else lower), evidence=evidence)
    (finding,) = check_plan_bound(one, Fraction(bound), [said])
    return finding


def test_the_mean_load_is_the_faster_backward_of_every_layer_rounded_up_to_a_tick() -> None:
    (choice,) = plan().choices
    assert mean_load(plan(), choice) == 32
    split = LAYER | {"backward": 2, "weight": 3}
    for fused, each in ((None, 6), (4, 5), (9, 6)):
        layer = split if fused is None else split | {"fused": fused}
        assert mean_load(plan(layer), choice) == 4 * 8 * each // 2
    assert mean_load(plan(stage_overhead={"forward": 1, "backward": 3}), choice) == 4 * (16 + 2 * 4) // 2
    odd = plan(LAYER | {"count": 1}, devices=3, layers=[LAYER | {"count": 3}, LAYER | {"name": "head", "count": 1}])
    assert mean_load(odd, choice) == 11  # 32 on three devices
    tenths = plan(LAYER | {"forward": Fraction(3, 10), "backward": Fraction(4, 10)}, devices=3)
    assert mean_load(tenths, choice) == Fraction(15, 2)  # 22.4 on three devices


def test_every_placement_must_be_spoken_of_and_none_below_the_bound() -> None:
    one = plan()
    assert [f.verdict for f in check_plan_bound(one, Fraction(1), [])] == [Verdict.REFUSED]
    assert found(one, MeanLoad(), 32, lower=31).verdict is Verdict.REFUSED
    assert found(one, MeanLoad(), 31, lower=32).verdict is Verdict.VERIFIED
    (choice,) = one.choices
    none = ChoiceResult(choice, None, evidence=TooManyStages())
    (finding,) = check_plan_bound(one, Fraction(1), [none])
    assert finding.verdict is Verdict.REFUSED  # there are partitions with two stages
    assert found(one, None, 1).verdict is Verdict.NOT_VERIFIED


def test_the_mean_load_verifies_what_is_no_more() -> None:
    assert found(plan(), MeanLoad(), 32).text == "linear: no plan is below 32 (mean load, computed again)"
    assert found(plan(), AllPartitions(), 32).verdict is Verdict.VERIFIED
    assert found(plan(), MeanLoad(), 33).verdict is Verdict.REFUSED


def test_too_many_stages_are_those_that_the_layers_cannot_be_cut_into() -> None:
    two = LAYER | {"count": 2}
    for keys, verdict in (
        ({"devices": 3}, Verdict.VERIFIED),
        ({"devices": 2}, Verdict.REFUSED),
        ({"devices": 2, "partition": "even"}, Verdict.REFUSED),
        ({"devices": 3, "partition": "even"}, Verdict.VERIFIED),
    ):
        assert found(plan(two, **keys), TooManyStages(), 1).verdict is verdict
    given = plan(partition=[3, 5])
    assert found(given, TooManyStages(), 1).verdict is Verdict.REFUSED
    assert found(replace(given, counts=(3, 3, 2)), TooManyStages(), 1).verdict is Verdict.VERIFIED
    # An even partition would part two layers that share a stage; others would not.
    layers = [LAYER | {"name": name, "count": 1, "with_previous": name == "c"} for name in "abcd"]
    for keys, verdict in (({"partition": "even"}, Verdict.VERIFIED), ({}, Verdict.REFUSED)):
        assert found(plan(layers=layers, **keys), TooManyStages(), 1).verdict is verdict


def test_orders_are_trusted_only_where_orders_are_given() -> None:
    free, one = plan(), plan(schedule=["1f1b", "gpipe"])
    paths = tuple(OrderPaths(name, (Partition((4, 4)),)) for name in ("1f1b", "gpipe"))
    assert found(free, AllOrders(paths), 99).verdict is Verdict.REFUSED
    both = found(one, AllOrders(paths), 99)
    assert (both.verdict, both.text) == (
        Verdict.TRUSTED,
        "linear: no plan is below 99: rests on CP-SAT's search over the longest paths of 2 partitions",
    )
    assert found(one, AllOrders(paths[:1]), 99).text.endswith("; that gpipe does not apply is not checked here")
    assert found(one, AllOrders(()), 99).verdict is Verdict.NOT_VERIFIED


def solved(value: int, bound: int | None, counts: tuple[int, ...] = (6, 2), **keys: object) -> AllPartitions:
    """A partition with a certificate: device 0 has six layers of two ticks each, four times."""
    certificate = Certificate("load", value, "", 0, OnDevice(0))
    whole = None if bound is None else Fraction(bound)
    return AllPartitions((SolvedPartition(Partition(counts, **keys), whole, certificate),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("evidence", "bound", "verdict", "words"),
    [
        (solved(40, 40, (5, 3)), 40, Verdict.VERIFIED, "all partitions, looked at again device by device"),
        (solved(48, 48), 48, Verdict.TRUSTED, "; of 1 that it left out, 1 are verified"),
        (solved(49, 49), 49, Verdict.REFUSED, "the evidence proves 48"),
        (solved(48, 49), 49, Verdict.REFUSED, "its certificate speaks of less"),
        (solved(48, 48), 49, Verdict.TRUSTED, "search over all partitions"),  # which the search did not leave out
        # A certificate of a value says nothing of whether the partition has any plan.
        (solved(48, None), 99, Verdict.NOT_VERIFIED, "without a certificate of so much"),
        (solved(99, None), 99, Verdict.REFUSED, "the evidence proves 48"),
        (solved(48, None), 48, Verdict.TRUSTED, "1 are verified"),
        (solved(99, 99, (5, 4)), 99, Verdict.TRUSTED, "1 are verified"),  # no partition of eight layers
        (solved(99, 99, (8, 0)), 99, Verdict.TRUSTED, "1 are verified"),
        (
            solved(48, 48, recompute=((Recomputed("layer", "all", 1),), ())),
            48,
            Verdict.REFUSED,
            "recomputes what it has not",
        ),
        (
            AllPartitions((SolvedPartition(Partition((6, 2)), Fraction(48)),)),
            48,
            Verdict.NOT_VERIFIED,
            "0 are verified",
        ),
        (AllPartitions(), 48, Verdict.TRUSTED, "search over all partitions"),
    ],
)
def test_partitions_that_the_search_left_out_have_bounds_of_their_own(
    evidence: AllPartitions, bound: int, verdict: Verdict, words: str
) -> None:
    finding = found(plan(), evidence, bound)
    assert finding.verdict is verdict
    assert words in finding.text


def test_the_weakest_of_all_findings_counts() -> None:
    order = (Verdict.VERIFIED, Verdict.TRUSTED, Verdict.NOT_VERIFIED, Verdict.REFUSED)
    findings = [Finding(verdict, "") for verdict in order]
    assert [weakest(findings[:n]) for n in range(5)] == [Verdict.VERIFIED, *order]
    assert weakest(reversed(findings)) is Verdict.REFUSED


def test_partitions_that_fit_no_memory_are_verified_and_published_orders_trusted() -> None:
    left_out = AllPartitions((SolvedPartition(Partition((5, 3)), None),))
    tight = plan(LAYER | {"activation": 1, "memory": 0}, memory={"capacity": 4})
    assert "1 are verified" in found(tight, left_out, 99).text
    assert found(plan(), left_out, 99).verdict is Verdict.NOT_VERIFIED
    assert found(plan(schedule=["1f1b"]), left_out, 99).verdict is Verdict.TRUSTED
