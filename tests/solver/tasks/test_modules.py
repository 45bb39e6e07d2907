"""Modules that feed a trunk: proved placements, the validator, pass names, files, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from, read_problem, with_objective
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.pass_names import pass_from, pass_text, stage_text
from pipesched.problem.passes import Task
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.state import Ran, State
from pipesched.results.solution import Status
from pipesched.schedule.drawing.colours import shade_names, shade_numbers
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, parse_slot
from pipesched.simulation.simulator import simulate
from pipesched.validation.state_rules import validate_from_state
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.construction.list_scheduling import sequential
from solver.replanning.replan import replan
from solver.solve import solve
from tests.support.counted import counted
from tests.support.in_turn import in_turn
from tests.support.makers import problem

SURE = counted(20)
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "modules"
VISION: dict[str, Any] = {"serves": 2, "times": {"forward": 3, "backward": 5}}
STEP: dict[str, Any] = {"step": {"time": 1}}


def with_vision(devices: int = 2, microbatches: int = 4, **vision: Any) -> Problem:
    times = {"forward": 1, "backward": 2, "transfer": 1}
    return problem(devices, microbatches, times=times, modules={"vision": VISION | vision})


@pytest.mark.parametrize(
    ("name", "value"), [("first-stage", 414), ("own-device", 442), ("in-the-bubbles", 380), ("replicated", 373)]
)
def test_an_encoder_placed_four_ways_is_proved(name: str, value: int) -> None:
    found = solve(read_problem(EXAMPLES / f"{name}.yaml"), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, value)
    assert found.timeline is not None and validate(found.timeline) == []


def test_a_head_on_all_devices_has_its_bound_from_the_arcs_and_the_check_verifies_it() -> None:
    """A head of 26 layers: 641.74 is the optimum with all of it on one device, 317.68 with a part on each."""
    one = read_problem(EXAMPLES.parent / "shared-vocabulary.yaml")
    bound = certificates(one, one.objective)[0]
    assert one.in_units(bound.value_ticks) == 317.68
    assert check_bound(one, bound).verdict is Verdict.VERIFIED
    assert check_bound(one, replace(bound, value_ticks=bound.value_ticks + 1)).verdict is Verdict.REFUSED
    assert validate(simulate(one, sequential(one))) == []


@pytest.mark.parametrize(("barriers", "value"), [(2, 2 + 1 + 3 + 1 + 4 + 1 + 5), (1, 2 + 1 + 3 + 1 + 5)])
def test_parts_of_a_head_wait_for_the_collective_that_joins_them(barriers: int, value: int) -> None:
    """In turn: the trunk's forward, sent, the parts, a collective, and with two their backwards and another."""
    times = {"forward": 3, "backward": 4, "transfer": 1}
    one = problem(2, 1, placement=[0], times={"forward": 2, "backward": 5, "transfer": 1},
                  modules={"head": {"placement": "shared", "follows": 0, "barriers": barriers, "times": times}})  # fmt: skip
    found = solve(one, SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, value + 4 * (barriers == 1))
    assert found.timeline is not None
    starts = dict(found.timeline.starts)
    early = {task: start - (task.of == pass_from(one, "BW0.0")) for task, start in starts.items()}
    late = [v.text for v in validate(replace(found.timeline, starts=early))]
    assert any("BW0.0" in text for text in late)


def test_validator_and_simulator_know_what_feeds_what() -> None:
    """A pass of the module is before the forwards that it serves, its backward behind all backwards of these."""
    one = problem(1, 2, times={"forward": 1, "backward": 2}, modules={"vision": VISION})
    right = "F1.0 F0.0 BW0.0 F0.1 BW0.1 BW1.0"
    timeline = simulate(one, Schedule((tuple(parse_slot(name, one) for name in right.split()),)))
    assert validate(timeline) == [] and measure(timeline).makespan_ticks == 14
    for wrong, late in (("F0.0 F1.0 BW0.0 F0.1 BW0.1 BW1.0", "F0.0"), ("F1.0 F0.0 BW0.0 F0.1 BW1.0 BW0.1", "BW1.0")):
        schedule = Schedule((tuple(parse_slot(name, one) for name in wrong.split()),))
        starts, now = {}, 0
        for slot in schedule.orders[0]:
            for task, part in one.tasks(slot[0]):
                starts[task], now = now, now + part.ticks
        found = validate(type(timeline)(one, schedule, starts))
        assert [violation.rule for violation in found] == ["precedence"], wrong
        assert late in found[0].text


def test_the_output_travels_to_the_stages_that_it_feeds_and_the_gradient_back() -> None:
    times = {"forward": 1, "backward": 1, "transfer": 2}
    one = problem(3, 1, placement=[1, 2], times={"forward": 1, "backward": 1, "transfer": 4},
                  modules={"vision": {"placement": [0], "feeds": [0, 1], "times": times}})  # fmt: skip
    timeline = simulate(one, sequential(one))
    assert validate(timeline) == []
    # 1, sent in 2, 1, sent in 4, twice 1, sent in 4, 1, sent in 2, 1.
    assert measure(timeline).makespan_ticks == 1 + 2 + 1 + 4 + 1 + 1 + 4 + 1 + 2 + 1


def test_copies_take_passes_in_turn_and_micro_batches_keep_their_order() -> None:
    one = with_vision(placement="replicated", serves=1)
    assert [list(walk) for walk in one.walking] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    assert [(arc.before, arc.after, arc.places) for arc in one.chain_arcs.arcs if not arc.backward] == [
        (2, 0, (0, 2)), (3, 0, (1, 3)),
    ]  # fmt: skip
    assert one.walks.queues == (0, 1, 2, 3)
    found = solve(one, SURE)
    assert found.status is Status.OPTIMAL and found.timeline is not None
    starts = [found.timeline.start(parse_slot(f"F0.{j}", one)[0]) for j in range(4)]
    assert starts == sorted(starts)


def test_one_micro_batch_after_the_other_fits_whenever_any_schedule_does() -> None:
    """What it takes: an encoder's activation through both of its micro-batches, and one of these at a time."""
    tight: dict[str, Any] = {"capacity": 3, "activation": 1}
    one = problem(1, 4, times={"forward": 1, "backward": 1}, memory=tight, modules={
        "vision": VISION, "audio": VISION | {"serves": 4}})  # fmt: skip
    timeline = simulate(one, sequential(one))
    assert validate(timeline) == [] and measure(timeline).peak_quanta[0] == 3
    less = problem(1, 4, times={"forward": 1, "backward": 1}, memory=tight | {"capacity": 2}, modules={
        "vision": VISION, "audio": VISION | {"serves": 4}})  # fmt: skip
    assert "stages 0, 1, 2 of one micro-batch" in (why_infeasible(less) or "").replace("1, 2, 0", "0, 1, 2")


def test_the_rest_of_an_iteration_is_ordered_anew() -> None:
    """From a state in which the module's first pass and the first forward have run, all as in the best order."""
    one = with_vision()
    found = solve(one, SURE)
    assert found.timeline is not None and found.status is Status.OPTIMAL
    begun = {Task(p): Ran(found.timeline.start(p), found.timeline.end(p)) for p in found.timeline.schedule.passes()}
    now = max(begun[Task(pass_from(one, name))].start for name in ("F2.0", "F0.0"))
    ran = {p: times for p, times in begun.items() if times.start <= now}
    again = replan(one, State(now, ran), SURE)
    assert (again.status, again.value) == (Status.OPTIMAL, found.value_ticks)
    assert again.tasks is not None and validate_from_state(one, again.state, again.tasks) == []
    wrong = dict(again.tasks)
    late = pass_from(one, "F2.1")
    wrong[Task(late)] = Ran(*(tick + 100 for tick in wrong[Task(late)]))
    assert any(late in v.passes and v.rule == "precedence" for v in validate_from_state(one, again.state, wrong))


def test_a_period_is_refused_however_it_is_asked_for() -> None:
    with pytest.raises(BadInput, match=r"objective: found period with modules; allowed: makespan or span"):
        with_objective(with_vision(), Objective.PERIOD)
    assert with_objective(with_vision(), Objective.SPAN).objective == Objective.SPAN
    forward = [{"name": "lookup", "time": 2, "needs": "nothing"}, {"name": "attn", "time": 1}]
    tasks = {"forward": forward, "backward": [{"name": "attn", "time": 1}]}
    looking_up = problem_from({"devices": 2, "microbatches": 2, "tasks": tasks})
    with pytest.raises(BadInput, match="objective: found period with a task that needs nothing; allowed: makespan or"):
        with_objective(looking_up, Objective.PERIOD)
    plain = problem_from({"devices": 2, "microbatches": 2, "tasks": tasks | {"forward": forward[1:]}})
    assert with_objective(plain, Objective.PERIOD).objective == Objective.PERIOD


def test_passes_of_a_module_are_counted_from_0_on() -> None:
    one = with_vision()
    p = pass_from(one, "F2.1")
    assert p.microbatch == 5 and pass_text(one, p) == "F2.1"
    assert stage_text(one, 2, 5) == "stage 2 (module vision), pass 1"
    assert (shade_names(one), shade_numbers(one)) == (["Trunk", "vision"], [0, 0, 1])


def test_units_are_those_of_the_file() -> None:
    one = problem(1, 2, time_unit="ms", times={"forward": 1, "backward": 2}, memory={"unit": "MiB", "activation": 1},
                  modules={"vision": {"times": {"forward": "300 us", "backward": 1},
                                      "memory": {"activation": "1 GiB", "freed_by_backward": "50%"}}})  # fmt: skip
    own = one.stages[1]
    assert (own.forward * one.tick * 10, own.activation * one.resolution, own.freed * one.resolution) == (3, 1024, 512)


@in_turn(
    ("keys", "mistake"),
    [
        ({"modules": {}}, "modules: found keys"),
        ({"modules": {"vision": {"serves": 2}}}, "modules.vision.times: missing"),
        ({"modules": {"vision": VISION | {"serves": 3}}}, "modules.vision.serves: found 3; allowed: what divides the 4"),
        ({"modules": {"vision": VISION | {"feeds": 2}}}, "modules.vision.feeds: found stage 2; allowed: 0 to 1"),
        ({"modules": {"vision": VISION | {"placement": [2]}}}, "modules.vision.placement: found device 2"),
        ({"modules": {"vision": VISION | {"placement": [[0], [0]]}}}, "placement: found a device in two copies"),
        ({"modules": {"vision": VISION | {"placement": "replicated", "serves": 4}}}, "found 2 copies; allowed: up to 1"),
        ({"modules": {"vision": VISION | {"stages": 2, "placement": [0]}}}, "modules.vision.stages: found 2; allowed: 1"),
        ({"modules": {"vision": VISION | {"times": {"forward": 1, "backward": 1, "weight": 1}}}}, "times.weight: allowed"),
        ({"modules": {"vision": VISION | {"times": {"forward": -1, "backward": 1}}}}, "modules.vision.times.forward"),
        ({"modules": {"vision": VISION | {"times": {"forward": [1, 2], "backward": 1}}}}, "vision.times.forward: found 2"),
        ({"modules": {"vision": VISION | {"memory": {"capacity": 1}}}}, "modules.vision.memory.capacity: unknown key"),
        ({"modules": {"vision": VISION | {"serves": 1, "follows": 0}}}, "follows, barriers: found one of the two"),
        ({"modules": {"vision": VISION | {"serves": 1, "follows": 0, "barriers": 1}}}, "vision.placement: found nothing"),
        ({"modules": {"vision": VISION | {"follows": 0, "barriers": 1, "placement": "shared"}}}, "vision.serves: found 2"),
        ({"modules": {"vision": VISION | {"stages": 2, "placement": "shared"}}}, "modules.vision.stages: found 2"),
        ({"modules": {"vision": VISION}, "objective": "period"}, "objective: found period with modules"),
        ({"modules": {"vision": VISION}, "sequence_chunks": 2}, "sequence_chunks: found with modules"),
        ({"modules": {"vision": VISION}, "placement": "bidirectional"}, "placement: found bidirectional with modules"),
        ({"modules": {"vision": VISION | {"parameters": STEP}}}, "modules.vision.parameters: found without parameters"),
        ({"modules": {"vision": VISION | {"parameters": {"gather": {"most": 2}}}}, "parameters": STEP,
          "objective": "iteration"}, "modules.vision.parameters.gather.most: found 2"),
        ({"modules": {"vision": VISION | {"parameters": {"gather": {"keep": {"window": 1}}}}}, "parameters": STEP,
          "objective": "iteration"}, "modules.vision.parameters.gather.keep: found a window"),
        ({"modules": {"vision": VISION}, "placement": [0]}, "placement: found no stage on device 1, nor a module"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_each(keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        problem(2, 4, **({"times": {"forward": 1, "backward": 2}} | keys))
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]
