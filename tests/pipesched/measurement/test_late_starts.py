"""Predicted against measured: what was put into a step by hand is the cause that is named, and causes add up."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.measurement.late_starts import late_starts
from pipesched.measurement.pass_causes import OF_DURATIONS, Cause, longer_by_cause
from pipesched.measurement.step_arcs import step_arcs
from pipesched.measurement.trace import Measured, MeasuredPass, Step, to_text
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem, random_order, waits

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TIMES = {"forward": [4, 5], "backward": [6, 4], "weight": [2, 3], "transfer": 2}


class Machine:
    """Runs a step in milliseconds, with passes, messages and pauses as long as a test says; shares no code with replays."""

    def __init__(self, one: Problem, orders: Schedule) -> None:
        self.one, self.orders, self.needs = one, orders, waits(one, orders.is_fused)
        self.longer: dict[Pass, float] = {}
        self.message: dict[Pass, float] = {}  # more than the transfer, by its receiver
        self.pause: dict[Pass, float] = {}  # before the pass

    def step(self) -> Step:
        one = self.one
        ran: dict[Pass, MeasuredPass] = {}
        queues = [[p for (p,) in order] for order in self.orders.orders]
        free = [0.0] * one.devices
        while any(queues):
            for device, queue in enumerate(queues):
                while queue and all(before in ran for before, _ in self.needs[queue[0]]):
                    p = queue.pop(0)
                    arrived = [
                        ran[before].end + lag / 1000 * float(one.tick) + self._late(before, p)
                        for before, lag in self.needs[p]
                    ]
                    start = max([free[device] + self.pause.get(p, 0.0) / 1000, *arrived])
                    length = one.in_units(one.duration(p)) + self.longer.get(p, 0.0)
                    free[device] = start + length / 1000
                    ran[p] = MeasuredPass(p, start, free[device])
        return tuple(tuple(ran[p] for (p,) in order) for order in self.orders.orders)

    def _late(self, before: Pass, p: Pass) -> float:
        return self.message.get(p, 0.0) / 1000 if self.one.device(before) != self.one.device(p) else 0.0


def machine(name: str, devices: int = 2, microbatches: int = 6, **keys: object) -> Machine:
    one = problem(devices, microbatches, **({"time_unit": "ms", "times": TIMES} | keys))
    return Machine(one, HEURISTICS[name].order(one))


def trace(one: Problem, *steps: Step) -> Measured:
    return Measured(one, "ran", steps, split="store", seconds_per_unit=0.001)


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("placement", ["linear", "v-shape"])
def test_causes_add_up_whatever_happens(placement: str, seed: int) -> None:
    """Random lengths, messages that take more or less than planned, pauses, several steps."""
    rng = Random(seed)
    times = {
        key: value * (1 + (placement != "linear")) if isinstance(value, list) else value for key, value in TIMES.items()
    }
    one = problem(2, 5, placement=placement, times=times, time_unit="ms")
    orders = random_order(one, rng)
    steps = []
    for _ in range(3):
        real = Machine(one, orders)
        for p in orders.passes():
            real.longer[p] = rng.uniform(-1, 4)
            real.message[p] = rng.uniform(-2, 3)
            real.pause[p] = rng.choice([0, 0, 1.5])
        steps.append(real.step())
    measured = trace(one, *steps)
    found = late_starts(measured, one)
    assert found is not None
    assert found.measured == near(sorted(measured.makespans)[1])
    assert found.predicted == near(one.in_units(measure(simulate(one, orders)).makespan_ticks) / 1000)
    assert sum(found.causes.values()) == near(found.measured - found.predicted)
    assert found.causes[Cause.OTHER_PATH] <= 1e-9
    ran = {x.of: x for row in measured.steps[found.step] for x in row}
    begin = min(x.start for x in ran.values())
    timeline = simulate(one, orders)
    for p in found.passes:
        assert p.measured == near(ran[p.of].start - begin)
        assert p.predicted == near(one.in_units(timeline.start(p.of)) / 1000)
        assert sum(p.causes.values()) == near(p.late)


def changed(cause: Cause) -> tuple[Problem, list[Step]]:
    """Steps of a machine that keeps to the plan but for one cause; the median step is one that does not."""
    real = machine("1f1b", microbatches=8)
    passes = list(real.orders.passes())
    late = [Pass(BW, 1, j) for j in (3, 4, 5)]
    match cause:
        case Cause.STAGE_TIMES:
            real.longer = {p: 2.0 for p in passes if p.stage == 1}
        case Cause.MICROBATCHES:
            real.longer = {late[0]: 3.0}
        case Cause.JITTER:  # another pass in each step: the median of each is the usual one
            steps = []
            for p in late:
                real.longer = {p: 3.0}
                steps.append(real.step())
            return real.one, steps
        case Cause.TRANSFERS:
            real.message = dict.fromkeys(passes, 1.0)
        case Cause.PAUSES:
            real.pause = dict.fromkeys(passes, 0.5)
    return real.one, [real.step()] * 3


@pytest.mark.parametrize("cause", [*OF_DURATIONS[:1], *OF_DURATIONS[2:], Cause.TRANSFERS, Cause.PAUSES])
def test_what_was_put_in_is_what_is_named(cause: Cause) -> None:
    """Replaced alone it gives the measured makespan, and no other cause is blamed."""
    one, steps = changed(cause)
    found = late_starts(trace(one, *steps), one)
    assert found is not None and found.measured - found.predicted > 0.0009
    assert all(found.causes[other] == near(0) for other in set(Cause) - {cause, Cause.OTHER_PATH})
    assert found.causes[cause] + found.causes[Cause.OTHER_PATH] == near(found.measured - found.predicted)
    assert found.alone[cause] == near(found.measured)
    assert all(found.alone[other] == near(found.predicted) for other in set(found.alone) - {cause})
    assert found.costliest is cause
    assert {one.cause for one in found.largest} == {cause}
    if cause in (Cause.MICROBATCHES, Cause.JITTER):
        # Steps that are equal but for rounding: any of them may be the median one.
        expected = {Pass(BW, 1, j) for j in ((3, 4, 5) if cause is Cause.JITTER else (3,))}
        ((slow, _, seconds),) = found.largest
        assert slow in expected and seconds == near(0.003)


def test_passes_beside_a_message_that_take_longer_are_contention() -> None:
    """Every other forward pauses until the message of the one before is through; the others take 2 ms longer."""
    real = machine("gpipe", microbatches=12, times={"forward": [4, 9], "backward": 8, "transfer": 5})
    forwards = [Pass(F, 0, j) for j in range(12)]
    real.pause = dict.fromkeys(forwards[::2], 10.0)
    real.longer = dict.fromkeys(forwards[1::2], 2.0)
    arcs = step_arcs(real.one, real.orders, real.step(), float(real.one.tick) / 1000)
    assert arcs is not None
    planned = {p: real.one.in_units(real.one.duration(p)) / 1000 for p in arcs.ran}
    usual = {p: one.seconds for p, one in arcs.ran.items()}
    found = longer_by_cause(usual, planned, [arcs], arcs)
    for p in forwards:  # half of them are beside a message: the stage's median lies between
        beside = p.microbatch % 2
        assert found[p][Cause.CONTENTION] == near(0.001 if beside else -0.001)
        assert found[p][Cause.STAGE_TIMES] == near(0.001)
        assert sum(found[p].values()) == near(usual[p] - planned[p])


@pytest.mark.parametrize(
    ("name", "measured", "predicted"), [("primus-pp8", 3245.271, 3186.904), ("primus-pp8-vpp2", 2876.113, 2824.182)]
)
def test_two_public_runs_are_predicted_within_two_percent(
    name: str, measured: float, predicted: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """AMD Primus' traces of 8 ranks: the order that ran is the best one for its times, and takes 98 % of what was measured."""
    path = EXAMPLES / f"{name}.yaml"
    one = read_problem(path)
    timeline = simulate(one, HEURISTICS["1f1b" if one.placement.stages == 8 else "interleaved-1f1b"].order(one))
    assert one.in_units(measure(timeline).makespan_ticks) == pytest.approx(predicted, abs=0.001)
    assert 0.98 < predicted / measured < 1
    assert main(["compare", str(path), "--no-optimal", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower_bound"] == pytest.approx(predicted, abs=0.001)


def test_compare_says_what_costs_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, steps = changed(Cause.PAUSES)
    path = tmp_path / "measured.json"
    path.write_text(to_text(trace(one, *steps)))
    assert main(["compare", "--measured", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,), optimum = document["rows"], document["optimum"]
    assert optimum["status"] == "optimal" and optimum["value"] <= 1000 * row["predicted"] + 1e-9
    said = row["late_starts"]
    assert said["costs_most"] == "pauses" and said["step"] == 0
    assert sum(said["causes"].values()) == near(row["measured"] - row["predicted"])
    assert said["replaced_alone"]["pauses"] == near(row["measured"])
    assert len(said["passes"]) == 32 and len(said["devices"]) == 2
    assert main(["compare", "--measured", str(path)]) == 0
    text = capsys.readouterr().out
    assert "costs most: that devices go from pass to pass without a pause" in text
    assert "late starts of each device" in text


def test_passes_of_several_tasks_are_not_split() -> None:
    tasks = {kind: [{"name": "a", "time": 1}, {"name": "b", "time": 2}] for kind in ("forward", "backward")}
    one = problem_from({"devices": 1, "microbatches": 2, "time_unit": "ms", "tasks": tasks}, "t", "t")
    row = [MeasuredPass(Pass(kind, 0, j), 0.003 * at, 0.003 * (at + 1))
           for at, (kind, j) in enumerate([(F, 0), (BW, 0), (F, 1), (BW, 1)])]  # fmt: skip
    assert late_starts(trace(one, (tuple(row),)), one) is None


def test_a_picture_and_a_report_of_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, steps = changed(Cause.TRANSFERS)
    path = tmp_path / "measured.json"
    path.write_text(to_text(trace(one, *steps)))
    files = [tmp_path / name for name in ("late.png", "late.svg", "late.html")]
    for file, more in zip(files, (["--no-optimal"], ["--no-optimal"], ["--workers", "1"]), strict=True):
        assert main(["compare", "--measured", str(path), *more, "-o", str(file)]) == 0
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert ">measured less predicted<" in files[1].read_text() and ">Device 1<" in files[1].read_text()
    page = files[2].read_text()
    assert "messages take the problem&#x27;s transfer time" in page and "data:image/svg+xml" in page
    assert "Best order with these times (optimal)" in page and 'id="schedules"' in page
    assert "ms..<" not in page
    capsys.readouterr()
    assert main(["compare", "--measured", str(path), str(path), "-o", str(files[0])]) == 2
    assert "allowed: one run of single passes" in capsys.readouterr().err
    assert main(["compare", "--measured", str(path), "--no-optimal", "-o", str(tmp_path / "late.gif")]) == 2
    assert "allowed: .png, .svg, .pdf or .html" in capsys.readouterr().err
