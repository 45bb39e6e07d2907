"""Plans against every partition and order of tiny models, and against published results."""

import time
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from random import Random
from threading import Event

import pytest

from benchmarks.proofs.plan_attack import attack, small
from heuristics.catalogue import HEURISTICS
from pipesched.deadline import ask
from pipesched.errors import DoesNotApply
from pipesched.files.plan_file import plan_problem_from
from pipesched.problem.problem import Objective
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.planning import plan as module
from solver.planning.budget import Budget
from solver.planning.plan import plan
from solver.planning.search import placements
from solver.planning.sensitivity import changed_problems, sensitivity
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plan_brute_force import in_pieces, partitions, tiny_plan
from tests.support.varied_plans import varied_plan

WORK = counted(30.0)


def endless(*_: object) -> str:
    """Work of a minute that asks for its deadline, and waits in between."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ask()
        time.sleep(0.005)
    return "it was not ended"


@pytest.mark.parametrize("stopped", [True, False])
def test_the_reason_why_there_is_no_plan_ends_with_the_time(stopped, monkeypatch):
    monkeypatch.setattr(module, "what_is_lacking", endless)
    monkeypatch.setattr(module, "why_no_plan", endless)
    monkeypatch.setattr(module.FreeOrders, "run", lambda _: None)
    stop = Event()
    if stopped:
        stop.set()
    found = plan(slackpipe(False), Limits(seconds=0.3 if stopped else 0.1), stop=stop)
    assert (found.status, found.reason) == (Status.UNKNOWN, "")
    too_many = plan_problem_from(
        {"devices": 3, "microbatches": 4, "layers": [{"name": "one", "count": 2, "forward": 1, "backward": 2}]}
    )
    found = plan(too_many, Limits(seconds=0.3 if stopped else 0.1), stop=stop)
    assert found.status is Status.INFEASIBLE
    assert "3 stages; the model can be cut into 2 at most" in found.reason


def test_the_memory_that_is_lacking_is_that_of_shared_modules_too():
    """A device needs half of the vocabulary's 16 GiB, two layers of 4, and an activation of each: 18, neither less."""
    vocabulary = [{"name": name, "forward": 1, "backward": 2, "memory": 8} for name in ("embedding", "head")]
    layers = {"name": "decoder", "count": 4, "forward": 1, "backward": 2, "memory": 4, "activation": 1}
    document = {"devices": 2, "microbatches": 4, "vocabulary": "shared", "layers": [*vocabulary, layers]}

    def found(capacity):
        return plan(plan_problem_from(document | {"memory": {"capacity": capacity, "unit": "GiB"}}), counted(0.3))

    assert "device 0 needs 18 GiB, and has 12: 6 GiB more on every device" in found(12).reason
    assert "device 0 needs 18 GiB, and has 17.5: 0.5 GiB more on every device" in found(17.5).reason
    assert found(18).best is not None


def test_a_more_even_plan_is_kept_as_far_as_the_time_lasted(monkeypatch):
    """What the walk has met when it is ended in the middle of a step is the plan."""
    better, known = [], plan(slackpipe(False), counted(1.0)).best  # a slow machine may find none in so short a time

    def walk(owner, best):
        better.append(replace(best, schedule="more even"))
        yield better[-1]
        endless()

    monkeypatch.setattr(placements, "evened", walk)
    assert plan(slackpipe(False), Limits(seconds=0.1, workers=1), start=known).best is better[-1]


def test_no_walk_follows_the_time_limit_where_a_plan_takes_long(monkeypatch):
    begun = []
    monkeypatch.setattr(module.Placements, "even_out", lambda _: asking_once(begun))
    monkeypatch.setattr(module.FreeOrders, "run", lambda _: endless())
    ample = replace(module._PARAMS, evening_seconds=60.0)  # for a walk that begins late on a slow machine
    for seconds, walks, params in ((0.0, 1, ample), (1.0, 0, module._PARAMS)):
        begun.clear()
        monkeypatch.setattr(module, "_PARAMS", params)
        monkeypatch.setattr(Budget, "__init__", slow_budget(seconds))
        plan(slackpipe(False), Limits(seconds=0.1, workers=1))
        assert len(begun) == walks


def asking_once(begun):
    ask()
    begun.append(1)


def slow_budget(seconds, init=Budget.__init__):
    """The start of a budget in which a plan took so long to be validated."""

    def begin(self, limits, stop):
        init(self, limits, stop)
        self.took(seconds)

    return begin


def slackpipe(measured: bool):
    """SlackPipe's two cases: four micro-batches, four stages on two devices in turn, eight layers."""
    layers = [{"name": "layer", "count": 8, "forward": 1, "backward": 1}]
    document = {"devices": 2, "microbatches": 4, "placement": "interleaved", "chunks": 2}
    if measured:
        forward, backward = [1, 9, 2, 3, 4, 5, 6, 7], [2, 18, 4, 6, 8, 10, 12, 14]
        # The first stage adds 2 and 5, each middle one 3 and 6, the last 4 and 7.
        forward[0], backward[0], forward[7], backward[7] = 0, 1, 8, 15
        times = zip(forward, backward, strict=True)
        layers = [{"name": f"l{n}", "forward": f, "backward": b} for n, (f, b) in enumerate(times)]
        document["stage_overhead"] = {"forward": 3, "backward": 6}
    return plan_problem_from(document | {"layers": layers})


@pytest.mark.parametrize(("measured", "optimum"), [(False, 34), (True, 306)])
def test_slackpipes_cases_are_proved(measured, optimum):
    found = plan(slackpipe(measured), WORK)
    assert (found.status, found.value) == (Status.OPTIMAL, optimum)
    assert validate(found.best.timeline) == []


@pytest.mark.parametrize("seed", daily([*islice((seed for seed in count() if small(tiny_plan(Random(seed)))), 6)], 3))
def test_plan_is_the_best_of_all_partitions_and_orders(seed):
    assert attack(tiny_plan(Random(seed))).wrong == ""


SPLIT = (seed for seed in count() if small(tiny_plan(Random(seed))) and tiny_plan(Random(seed)).model.splittable)


@pytest.mark.parametrize("seed", daily([*islice(SPLIT, 6)], 6))
def test_plan_is_the_best_where_the_last_stage_splits_no_backward(seed):
    assert attack(replace(tiny_plan(Random(seed)), whole_last=True)).wrong == ""


# 87: parameters alone are more than a device has, and all activations are recomputed.
@pytest.mark.parametrize("seed", [0, 9, 87])
def test_plan_is_the_best_under_rules_for_recomputation_and_of_all_placements(seed):
    assert attack(varied_plan(Random(seed))).wrong == ""


@pytest.mark.parametrize("seed", daily([0, 3, 4, 9], 2))
def test_plan_is_the_best_where_sequences_may_be_cut_in_pieces(seed):
    assert attack(in_pieces(tiny_plan(Random(seed)), Random(seed))).wrong == ""


def test_pieces_of_a_published_order_have_their_best_partition_and_lengths():
    """Two layers that are all attention, and two without."""
    layers = [{"name": n, "count": 2, "forward": 5, "backward": 10, "attention": a} for n, a in (("a", 1), ("b", 0))]
    document = {"devices": 2, "microbatches": 2, "placement": "linear", "layers": layers, "schedule": "seq1f1b"}
    problem = plan_problem_from(document | {"sequence_chunks": {"count": 4, "lengths": "free"}})
    best = {}
    for choice in problem.choices:
        here = (problem.problem(choice, partition) for partition in partitions(problem, choice))
        best[choice] = min(measure(simulate(p, HEURISTICS["seq1f1b"].order(p))).makespan_ticks * p.tick for p in here)
        # Pieces together take what the whole does.
        assert sum(one.model.sequence[0].forward for one in problem.pieces_of(choice)) == 5
    found = plan(problem, WORK)
    assert (found.status, found.value) == (Status.OPTIMAL, min(best.values()))
    assert best[problem.choices[1]] < best[problem.choices[0]]


@pytest.mark.parametrize("seed", daily(range(6), 2))
@pytest.mark.parametrize("name", ["1f1b", "gpipe", "zb-h1", "interleaved-1f1b"])
def test_published_order_has_its_best_partition(seed, name):
    """Against every partition simulated; also where memory leaves few of them or none."""
    problem = tiny_plan(Random(seed))
    (choice,) = problem.choices
    values = []
    for partition in partitions(problem, choice):
        here = problem.problem(choice, partition)
        try:
            timeline = simulate(here, HEURISTICS[name].order(here))
        except DoesNotApply:
            return
        if not validate(timeline):
            values.append(measure(timeline).makespan_ticks * here.tick)
    found = plan(replace(problem, schedules=(name,), objective=Objective.MAKESPAN), WORK)
    assert found.value == min(values, default=None)
    assert found.status is (Status.OPTIMAL if values else Status.INFEASIBLE)


def memory_of(capacity, recompute="free"):
    """Two devices, four layers; a layer and its activation take 5, recomputed 3."""
    layer = {"name": "a", "count": 4, "forward": 1, "backward": 1, "memory": 2, "activation": 3}
    layer["recompute"] = [{"name": "full", "time": 1, "keeps": 0.5}]
    more = {"memory": {"capacity": capacity}, "decide": {"recompute": recompute}, "chunks": 1}
    return plan_problem_from({"devices": 2, "microbatches": 2, "layers": [layer]} | more)


def test_no_plan_says_which_device_lacks_how_much():
    found = plan(memory_of(6.5), WORK)
    assert (found.status, found.value) == (Status.INFEASIBLE, None)
    assert "device" in found.reason and "0.5" in found.reason  # two layers, both recomputed, take 7
    assert plan(memory_of(7), WORK).value is not None


def test_a_memory_that_no_partition_fits_is_seen_before_more_first_plans_are_tried():
    phases = []
    found = plan(memory_of(6.5), WORK, lambda moment: phases.append(moment.phase))
    assert found.status is Status.INFEASIBLE
    assert any("is there a partition that fits?" in phase for phase in phases)
    assert not any(phase.endswith((": first plans", ": bound over all partitions")) for phase in phases)


def test_no_plan_says_whether_recomputation_would_do():
    found = plan(memory_of(8, recompute="never"), WORK)
    assert found.status is Status.INFEASIBLE
    assert "4 layers" in found.reason
    assert "would not" in plan(memory_of(6, recompute="never"), WORK).reason


def test_no_plan_says_how_many_devices_would_do():
    # A layer and its recomputed activation take 3.5, two layers 7.
    lacking = memory_of(6.5)
    assert "so would 4 devices" in plan(lacking, WORK).reason
    wider = replace(lacking, cluster=lacking.cluster.of_equal(4))
    assert plan(wider, WORK).value is not None
    assert plan(replace(lacking, cluster=lacking.cluster.of_equal(3)), WORK).value is None
    assert "more devices alone would not" in plan(memory_of(3), WORK).reason
    unlike = replace(lacking, cluster=replace(lacking.cluster, capacity=(Fraction(6), Fraction(13, 2))))
    assert "devices" not in plan(unlike, WORK).reason.partition("more on every device")[2]


def test_recomputed_layers_take_time_in_the_backward():
    found = plan(memory_of(7), WORK)
    assert all(row == {"full": 2} for row in found.best.partition.recompute_counts())
    assert [stage.fused for stage in found.best.timeline.problem.stages] == [4, 4]


def test_no_plan_for_a_published_order_says_what_that_order_lacks():
    # Parameters 4, and on device 0 two micro-batches of two recomputed layers: 6.
    found = plan(replace(memory_of(9.5), schedules=("gpipe",)), WORK)
    assert (found.status, found.value) == (Status.INFEASIBLE, None)
    assert "the order of gpipe" in found.reason and "0.5" in found.reason
    assert "another order (schedule: free)" in found.reason
    assert plan(replace(memory_of(10), schedules=("gpipe",)), WORK).value is not None
    even = plan(replace(memory_of(6.5), counts=(3, 1)), WORK)
    assert "so would" not in even.reason and "another partition alone would not" in even.reason


def test_changes_are_proved_where_their_plans_are():
    problem = memory_of(9)
    problem = replace(problem, cluster=replace(problem.cluster, transfer=problem.tick))
    found = plan(problem, WORK)
    changes = sensitivity(found, WORK)
    assert {one.text for one in changes} == {one.text for one in changed_problems(problem)}
    assert [one.plan.value for one in changes] == sorted(one.plan.value for one in changes) and len(changes) == 3
    for one in changes:
        assert one.optimal
        assert one.brings(found) == (one.plan.value / found.value - 1,) * 2
    assert changes[0].plan.value < found.value < changes[2].plan.value
    # Nothing is known of an unfinished search but what the change can save, and that slower links save nothing.
    short = sensitivity(found, replace(WORK, deterministic=0.0))
    assert [one.lower_bound >= found.lower_bound for one in short] == [one.slower for one in short]
    (faster,) = (one for one in short if one.text.endswith("faster"))
    assert found.lower_bound > faster.lower_bound >= found.lower_bound - next(changed_problems(problem)).saves


@pytest.mark.parametrize("stopped", [True, False])
def test_a_plan_to_start_from_is_kept_whatever_the_time(stopped, monkeypatch):
    """As at Ctrl-C within `layouts`, whose recommended plan starts from a known one."""
    known, stop, timed = plan(slackpipe(False), counted(1.0)), Event(), placements.retimed

    def slow(*args):
        time.sleep(0.2)
        ask()  # as simulating very many passes does
        return timed(*args)

    monkeypatch.setattr(placements, "retimed", slow)
    monkeypatch.setattr("pipesched.deadline._GRACE", 0.1)
    monkeypatch.setattr(module, "_PARAMS", replace(module._PARAMS, least_seconds=0.1))
    if stopped:
        stop.set()
    found = plan(slackpipe(False), Limits(seconds=0.05), stop=stop, start=known.best)
    assert found.best is not None and found.value <= known.value and found.interrupted == stopped
