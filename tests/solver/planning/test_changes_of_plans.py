"""Sensitivity of plans whose devices differ in speed, or may be left out: values and bounds of the changed problems."""

from fractions import Fraction

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import Plan
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.planning.plan import plan
from solver.planning.sensitivity import ChangeResult, sensitivity
from tests.support.counted import counted

WORK = counted(4.0)


def three_layers(transfer: int = 0, memory: int = 9, second: int | str = "0..1") -> PlanProblem:
    """Return a plan of three equal layers on one device or two, of which one may lack memory for all of them."""
    layers = [{"name": name, "forward": 1, "backward": 2, "memory": 3} for name in ("first", "middle", "last")]
    return plan_problem_from({
        "cluster": [{"devices": 1, "memory": memory}, {"devices": second, "memory": memory}],
        "microbatches": 2, "placement": "linear", "transfer": transfer, "layers": layers, "memory": {"unit": "GiB"},
    })  # fmt: skip


def changes_of(problem: PlanProblem) -> dict[str, ChangeResult]:
    """Return the changes of a problem's best plan, by the first word of each."""
    found = plan(problem, WORK)
    return {one.text.split()[0]: one for one in sensitivity(found, WORK)}


def test_a_faster_layer_saves_more_on_a_slower_device():
    layers = [
        {"name": "block", "count": 3, "forward": 1, "backward": 2},
        {"name": "last", "forward": 10, "backward": 20},
    ]
    cluster = [{"devices": 1}, {"devices": 1, "speed": Fraction(1, 10)}]
    problem = plan_problem_from({"cluster": cluster, "microbatches": 4, "placement": "linear", "layers": layers})
    found = plan(problem, WORK)
    faster = next(one for one in sensitivity(found, WORK) if one.text.startswith("last"))
    assert (found.value, faster.plan.value, faster.lower_bound) == (1209, 1089, 1089)
    assert faster.brings(found) == (Fraction(1089, 1209) - 1,) * 2


def test_a_faster_layer_is_as_often_in_the_model_as_before():
    runs = [
        {"name": "a", "count": 3, "forward": 1, "backward": 2},
        {"name": "b", "forward": 2, "backward": 2},
        {"name": "a", "forward": 1, "backward": 2},
    ]
    problem = plan_problem_from({"devices": 2, "microbatches": 3, "placement": "linear", "layers": runs})
    found = plan(problem, WORK)
    (faster,) = (one for one in sensitivity(found, WORK) if one.text.startswith("every a"))
    assert [(layer.name, layer.count) for layer in faster.plan.problem.model.layers] == [("a", 3), ("b", 1), ("a", 1)]
    assert faster.lower_bound <= faster.plan.value < found.value


def test_after_a_change_another_number_of_devices_may_be_best():
    # Two devices wait for transfers, and one lacks memory for all layers until it has more.
    scarce = three_layers(transfer=9, memory=8)
    assert (plan(scarce, WORK).value, plan(three_layers(transfer=9, memory=16), WORK).value) == (31, 18)
    more = changes_of(scarce)["8"]
    assert (more.plan.value, more.lower_bound) == (18, 18)
    # One device has no transfers that could become slower.
    assert (plan(three_layers(transfer=2), WORK).value, plan(three_layers(transfer=4), WORK).value) == (17, 18)
    slower = changes_of(three_layers(transfer=2))["links"]
    assert (slower.plan.value, slower.lower_bound) == (18, 18)


def test_changes_are_of_every_number_of_devices_that_a_runtime_takes():
    form = PARTITION_FORMATS["torchtitan"]
    narrowed, _ = restricted(three_layers(transfer=2, second="1..2"), form.name, form.limits)
    assert narrowed.parts
    before, changes = plan(narrowed, WORK), changes_of(narrowed)
    faster = plan_value(narrowed, before, changes["last"])
    assert faster < before.value < plan_value(narrowed, before, changes["links"])


def plan_value(problem: PlanProblem, before: Plan, change: ChangeResult) -> Fraction:
    """Return the value after a change, which is proved."""
    assert before.asked == problem and change.plan.value == change.lower_bound
    return change.plan.value
