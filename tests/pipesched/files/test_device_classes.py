"""`cluster` of a plan file: devices of unequal speed and memory, and every mistake in it."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from benchmarks.proofs.plan_attack import attack, small
from commands.reports.checks.plan_check import broken_plan
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, read_yaml, write_json
from pipesched.files.plan_answer import plan_answer_from, plan_text
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.files.problem_text import problem_text
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice
from pipesched.results.plan_figures import time_parts
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.in_turn import in_turn
from tests.support.plan_brute_force import best_value, tiny_plan
from tests.support.unequal_devices import on_unequal_devices
from tests.support.varied_plans import varied_plan

LAYER: dict[str, Any] = {"name": "layer", "count": 4, "forward": 1, "backward": 2, "memory": 1, "activation": 1}
CLASSES: list[dict[str, Any]] = [{"devices": 1, "memory": 20}, {"devices": 2, "speed": 0.6, "memory": 10}]
LINEAR = Choice("linear", 1)


def mixed(**changes: Any) -> dict[str, Any]:
    return {"cluster": CLASSES, "microbatches": 4, "layers": [LAYER], "placement": "linear"} | changes


def test_a_layer_takes_its_time_divided_by_the_speed_of_its_device() -> None:
    again = LAYER | {"recompute": [{"name": "full", "time": 1, "keeps": 0}]}
    one = plan_problem_from(mixed(layers=[again], stage_overhead={"forward": 1, "backward": 0}, transfer=1))
    problem = one.problem(LINEAR, Partition((2, 1, 1), ((), (), (Recomputed("layer", "full", 1),))))
    assert [stage.forward * one.tick for stage in problem.stages] == [3, Fraction(10, 3), Fraction(10, 3)]
    assert [stage.backward * one.tick for stage in problem.stages] == [4, Fraction(10, 3), 5]
    assert [pool.capacity * one.resolution for pool in problem.pools] == [20, 10, 10]
    assert problem.lag(0, 1) * one.tick == problem.lag(1, 2) * one.tick == 1
    # What no decimal is, the problem file says as a fraction.
    assert '"10/3"' in problem_text(problem)
    again_read = problem_from(read_yaml(problem_text(problem), ""))
    assert (again_read.tick, again_read.network.tasks) == (problem.tick, problem.network.tasks)
    assert plan_from_document(read_json(write_json(plan_document(one)), ""), "") == one


def test_the_fast_device_gets_more_layers() -> None:
    work = counted(2)
    found = plan(plan_problem_from(mixed(cluster=[{"devices": 1, "speed": 3}, {"devices": 1}])), work)
    assert found.best is not None and found.best.partition.counts == (3, 1)
    # Four layers of 3, four micro-batches: 48 at speed 4; three layers fill the first device as one does the second.
    parts = time_parts(found.problem, found.best)
    assert (parts.ideal, parts.imbalance) == (12, 0)
    assert found.lower_bound == found.value == found.best.value


def test_the_order_of_the_classes_is_decided_too() -> None:
    """As good as the best of the files that write the classes in every order, and proved."""
    head = LAYER | {"name": "head", "count": 1, "forward": 3, "with_previous": True}
    classes = [{"devices": 1, "memory": 20}, {"devices": 1, "speed": 0.5, "memory": 10}]
    work, layers = counted(4), {"layers": [LAYER, head]}
    found = plan(plan_problem_from(mixed(cluster=classes, decide={"cluster": "free"}, **layers)), work)
    each = [plan(plan_problem_from(mixed(cluster=order, **layers)), work) for order in (classes, classes[::-1])]
    values = [one.value for one in each]
    assert values[0] != values[1] and found.value == found.lower_bound == min(value for value in values if value)
    assert {one.value for one in found.variants} <= {*values, None} and len(found.variants) == 2
    assert found.problem.cluster == each[values.index(found.value)].problem.cluster
    alike = plan_problem_from(mixed(cluster=[classes[0]] * 3, decide={"cluster": "free"}))
    assert alike.variants == {}


def _drawn_with_devices_left_out(random: Random) -> dict[str, Any]:
    """One fast device or two, and up to two that are slower or have less memory, which a plan may leave out."""
    memory = random.choice((None, (6, 4), (9, 3)))
    rooms = [{} if memory is None else {"memory": each} for each in memory or (0, 0)]
    speeds = random.choice((1, 2)), random.choice((0.5, 1))
    classes = [
        {"devices": random.choice((1, "1..2")), "speed": speeds[0]} | rooms[0],
        {"devices": random.choice(("0..1", "0..1", "0..2")), "speed": speeds[1]} | rooms[1],
    ]
    layers = [
        {
            "name": f"l{n}",
            "forward": random.randint(1, 3),
            "backward": random.randint(1, 4),
            "memory": random.randint(0, 1),
            "activation": random.randint(0, 2),
        }
        for n in range(3)
    ]
    changes: dict[str, Any] = {"cluster": classes, "layers": layers, "transfer": random.choice((0, 1, 4)), "chunks": 1}
    changes |= {"decide": {"cluster": "free"}} if random.random() < 0.4 else {}
    return mixed(**changes) | {"microbatches": 2}


@pytest.mark.parametrize("seed", daily(range(24), 6))
def test_devices_left_out_by_brute_force(seed: int) -> None:
    """The plan is as good as the best of every set of devices and every order of it; the check refuses nothing."""
    one = plan_problem_from(_drawn_with_devices_left_out(Random(seed)))
    each = {name: best_value(part)[LINEAR] for name, part in one.variants.items()}
    best = min((value for value in each.values() if value is not None), default=None)
    found = plan(one, counted(4))
    assert found.value == best and (best is None or found.lower_bound == best)
    assert len({part.cluster.devices for part in one.variants.values()}) > 1
    if best is not None:
        assert each[found.variants[0].name] == best
        findings = check_plan_bound(one, found.lower_bound, found.choices, found.variants)
        assert weakest(findings) in (Verdict.VERIFIED, Verdict.TRUSTED)
    again = plan_from_document(read_json(write_json(plan_document(one)), ""), "")
    assert again == one and again.variants == one.variants


def test_a_plan_of_fewer_devices_is_checked_from_its_file() -> None:
    """A partition of other stages fits no other set of devices; the fault is a line and no crash."""
    classes = [{"devices": 2}, {"devices": "0..1", "speed": 0.2}]
    one = plan_problem_from(mixed(cluster=classes, transfer=1))
    found = plan(one, counted(4))
    assert found.best is not None and found.best.partition.stages == 2
    with pytest.raises(ValueError, match="found 2 stages"):
        one.problem(LINEAR, found.best.partition)
    assert broken_plan(plan_answer_from(read_json(plan_text(found), ""), "")) == []


@pytest.mark.parametrize("make", [tiny_plan, varied_plan])
def test_plans_on_unequal_devices_are_the_best(make: Any) -> None:
    drawn = (on_unequal_devices(random, make(random)) for random in map(Random, range(100, 200)))
    some = next(one for one in drawn if one.cluster.slowness and small(one))
    assert attack(some).wrong == ""


@in_turn(
    ("changes", "mistake"),
    [
        ({"cluster": [CLASSES[0]] * 5, "decide": {"cluster": "free"}}, "decide.cluster: found free with 5 classes"),
        ({"devices": 4}, "devices: found 4; allowed: those of cluster, 3, or no such key"),
        ({"memory": {"capacity": 8}}, "memory.capacity: found beside memory in cluster; allowed: one of the two"),
        (
            {"cluster": [{"devices": "2..1"}]},
            "cluster[0].devices: found '2..1'; allowed: a whole",
        ),
        ({"cluster": [{"devices": "0..0"}]}, "cluster[0].devices: found '0..0'"),
        ({"cluster": [{"devices": "0..30"}]}, "cluster: found more than 24 sets and orders of devices"),
        (
            {"cluster": [{"devices": "1..2"}], "partition": [2, 2]},
            "cluster.devices: found 0..2 with a partition as a list",
        ),
        ({"cluster": [{"devices": "1..2"}], "memory": {"capacity": [9, 9]}}, "memory.capacity: found a list, and"),
        ({"cluster": [{"devices": "1..2"}], "transfer": [[0, 1], [1, 0]]}, "transfer: found by pair of devices, and"),
        ({"cluster": []}, "cluster: found no entry; allowed: one or more"),
        ({"cluster": [{"speed": 1}]}, "cluster[0].devices: missing; it is required"),
        ({"cluster": [{"devices": 1}, {"devices": 1, "memory": 4}]}, "cluster: found memory of some classes alone"),
        ({"cluster": [{"devices": 2, "speed": 0}]}, "cluster[0].speed: found 0"),
        ({"cluster": [{"devices": 2, "speed": 0.1234}]}, "cluster[0].speed: found 0.1234"),
        ({"cluster": [{"devices": 1, "speed": 0.617}, {"devices": 1, "speed": 0.751}]}, "found speeds 0.617, 0.751"),
        (
            {"cluster": [{"devices": 1}, {"devices": 1, "speed": 2}], "placement": "bidirectional"},
            "placement: found bi",
        ),
    ],
)
def test_mistakes(changes: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan_problem_from(mixed(**changes))
    assert len(caught.value.mistakes) == 1 and mistake in caught.value.mistakes[0]
