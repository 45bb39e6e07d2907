"""Transfers that occupy sender and receiver at once, against an exact model and against every order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from matplotlib.colors import to_hex

from benchmarks.matrix.exact.model import TooLargeError
from benchmarks.matrix.exact.model import optimum as exact_optimum
from heuristics.catalogue import HEURISTICS
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput, Deadlock, DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.problem.passes import BW, F, Pass, Task
from pipesched.problem.problem import Problem
from pipesched.schedule.drawing.boxes import boxes_of
from pipesched.schedule.drawing.colours import TRANSFER
from pipesched.schedule.schedule import schedule_of
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from plots.drawing.stream_boxes import MEANINGS, lanes
from plots.drawing.stream_boxes import boxes_of as boxes_of_streams
from plots.html.document import document as page_of
from runtime.exporters.catalogue import EXPORTERS
from solver.bounds.analytic.catalogue import certificates
from solver.limits import Limits
from solver.solve import solve
from tests.support.nameless import nameless
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.task_brute_force import optimum as every_order

# Units of CP-SAT's work for one exact model.
_WORK = 1.0
_COUNTED = Limits(seconds=60, deterministic=6, workers=1)


def _document(random: Random) -> dict[str, Any]:
    """Up to three stages and micro-batches, times from 0 on, a limit of memory or none, transfers on one stream of two."""
    devices, microbatches = random.choice(((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)))
    placement = random.choice(("linear", "linear", "v-shape")) if devices == 2 and microbatches < 3 else "linear"
    stages = 2 * devices if placement == "v-shape" else devices

    def some(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(stages)]

    times: dict[str, Any] = {"forward": some(0, 4), "backward": some(0, 4)}
    if random.random() < 0.4:
        times["weight"] = some(0, 3)
    lags = random.choice((1, 2, some(0, 3)))
    times["transfer"] = {"time": lags, "on": random.choice(("compute", "compute", "comm")), "both": True}
    found = {
        "devices": devices,
        "microbatches": microbatches,
        "placement": placement,
        "streams": ["compute", "comm"],
        "times": times,
        "objective": random.choice(("makespan", "makespan", "span")),
    }
    if random.random() < 0.5:
        found["memory"] = {"capacity": stages // devices + random.randint(0, 1)}
    return found


def _drawn(count: int) -> Iterator[dict[str, Any]]:
    return (_document(Random(seed)) for seed in range(count))


def _with_transfer(document: Mapping[str, Any], **keys: object) -> dict[str, Any]:
    return {**document, "times": {**document["times"], "transfer": {**document["times"]["transfer"], **keys}}}


_LEAST: dict[str, Fraction | None] = {}


def _least(document: Mapping[str, Any]) -> Fraction | None:
    """The optimum by the exact model, found once for each document; None if too large or not proved."""
    key = repr(document)
    if key not in _LEAST:
        _LEAST[key] = None
        with suppress(TooLargeError):
            found = exact_optimum(document, _WORK)
            _LEAST[key] = found.most if found.least == found.most else None
    return _LEAST[key]


def test_a_solve_finds_the_optimum_and_claims_nothing_wrong() -> None:
    proved = 0
    for document in _drawn(9):
        problem, least = problem_from(document), _least(document)
        found = solve(problem, _COUNTED)
        for certificate in certificates(problem, problem.objective):
            assert least is None or certificate.value_ticks * problem.tick <= least, document
            assert check_bound(problem, certificate).verdict is not Verdict.REFUSED, document
        if found.timeline is None:
            continue
        assert not validate(found.timeline), document
        assert least is None or found.value >= least, document
        if least is not None and found.value_ticks == found.lower_bound:
            assert found.value == least, document
            proved += 1
    assert proved >= 5


def test_rendezvous_is_no_faster_than_transfers_that_block_less() -> None:
    slower = 0
    for document in _drawn(8):
        both = _least(document)
        one_side = _least(_with_transfer(document, both=False))
        times = {**document["times"], "transfer": document["times"]["transfer"]["time"]}
        alone = _least({**document, "times": times})
        if both is not None and one_side is not None and alone is not None:
            assert alone <= one_side <= both, document
            slower += one_side < both
    assert slower >= 1


def test_the_exact_model_agrees_with_every_order() -> None:
    compared = 0
    for document in _drawn(24):
        if document["devices"] == 2 and document["microbatches"] <= 2 and document["placement"] == "linear":
            problem, least = problem_from(document), _least(document)
            with suppress(TooManyOrdersError):
                found = every_order.__wrapped__(problem, problem.objective)
                if least is not None:
                    assert found is not None, document
                    assert found * problem.tick == least, document
                    compared += 1
    assert compared >= 3


def test_published_orders_run_and_are_valid() -> None:
    """Orders of passes alone say nothing of the order of transfers; none of them ends in a deadlock."""
    ran = 0
    for seed in range(3):
        random = Random(seed)
        document = _document(random) | {"placement": random.choice(("linear", "interleaved", "v-shape"))}
        document |= {"microbatches": 2 * document["devices"]}
        document["times"] = {
            "forward": 2,
            "backward": 3,
            "weight": 2,
            "transfer": {"time": 1, "on": "compute", "both": True},
        }
        document.pop("memory", None)
        problem = problem_from(document)
        for heuristic in HEURISTICS:
            with suppress(DoesNotApply):
                timeline = simulate(problem, heuristic.order(problem))
                assert not validate(timeline), (heuristic.name, document)
                ran += 1
    assert ran > 10


def _two_stages(**transfer: object) -> Problem:
    return problem_from(
        {"devices": 2, "microbatches": 1, "times": {"forward": 2, "backward": 3, "transfer": {"time": 1, **transfer}}}
    )


def test_a_transfer_occupies_both_devices_and_the_validator_says_so() -> None:
    """Device 0 computes from 0 to 2 and sends from 2 to 3; its second forward begins at 3."""
    document = {"devices": 2, "microbatches": 2}
    document["times"] = {"forward": 2, "backward": 3, "transfer": {"time": 1, "on": "compute", "both": True}}
    problem = problem_from(document)
    timeline = simulate(problem, HEURISTICS["gpipe"].order(problem))
    transfer, second = Task(Pass(F, 1, 0), 0), Task(Pass(F, 0, 1))
    assert (timeline.starts[transfer], timeline.starts[second]) == (2, 3)
    assert sorted(timeline.busy(0))[:4] == [(0, 2), (2, 3), (3, 5), (5, 6)]
    sooner = {task: start - (task == second) for task, start in timeline.starts.items()}
    broken = validate(Timeline(problem, timeline.schedule, sooner))
    assert [one.rule for one in broken] == ["overlap"]
    assert "F1.0/transfer" in broken[0].text


def test_an_activation_is_taken_with_its_receipt() -> None:
    """One-ahead receipts on a stream of their own cost the memory of what is received."""
    document = {
        "devices": 2,
        "microbatches": 2,
        "streams": ["compute", "comm"],
        "times": {"forward": [1, 4], "backward": [1, 4], "transfer": {"time": 2, "on": "comm", "both": True}},
        "memory": {"capacity": [2, 2]},
    }
    ample, tight = (solve(problem_from({**document, "memory": {"capacity": room}}), _COUNTED) for room in (2, [2, 1]))
    assert ample.value == 22
    assert tight.value == 24


def test_a_file_is_written_as_it_was_read() -> None:
    for document in _drawn(20):
        problem = problem_from(document)
        assert nameless(problem_from(problem_document(problem))) == nameless(problem)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"objective": "period"}, "objective"),
        ({"times": {"forward": 1, "backward": 1, "transfer": {"time": 1, "on": "compute", "both": 1}}}, "times.transfer.both"),
        ({"times": {"forward": 1, "backward": 1, "transfer": {"time": 1, "both": True}}}, "times.transfer.on"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(keys: dict[str, Any], line: str) -> None:
    document = {
        "devices": 2,
        "microbatches": 2,
        "times": {"forward": 1, "backward": 1, "transfer": {"time": 1, "on": "compute", "both": True}},
    }
    with pytest.raises(BadInput, match=line) as error:
        problem_from(document | keys)
    assert len(error.value.mistakes) == 1


def _four_stages(**keys: object) -> Problem:
    times = {"forward": 10, "backward": 10, "weight": 10, "transfer": {"time": 2, "on": "compute", "both": True}}
    return problem_from({"devices": 4, "microbatches": 8, "times": times, **keys})


@pytest.mark.parametrize(
    ("name", "keys"), [("zb-h2", {}), ("interleaved-1f1b", {"placement": "interleaved", "chunks": 2})]
)
def test_a_published_order_that_would_hang_does_not_apply_and_says_which_passes_wait(
    name: str, keys: dict[str, Any]
) -> None:
    """Each pass of the line waits for the next one, and the last for the first."""
    with pytest.raises(DoesNotApply, match="would hang") as error:
        HEURISTICS[name].order(_four_stages(**keys))
    waiting = str(error.value).partition(": ")[2].split(" waits for ")
    assert waiting[0] == waiting[-1]
    assert 2 < len(waiting) <= 8
    assert all(re.fullmatch(r"(F|B|W|BW)\d\.\d", one) or one == "..." for one in waiting)
    assert not validate(simulate(_four_stages(), HEURISTICS["1f1b"].order(_four_stages())))


def test_formats_that_keep_the_order_of_sends_write_that_of_the_schedule() -> None:
    """On every device, by start: computations, sends and receives."""
    problem = _four_stages()
    timeline = simulate(problem, HEURISTICS["zb-h1"].order(problem))
    rows = EXPORTERS["torch-csv-comms"].export(timeline)[".comms.csv"].splitlines()
    for device, row in enumerate(rows):
        events = list[tuple[int, str]]()
        for p in timeline.schedule.passes():
            for task, part in problem.tasks(p):
                if part.receives:
                    letter, start = str(p.kind)[0], timeline.starts[task]
                    sender = p.stage + (-1 if p.kind is F else 1)
                    events += [(start, f"{p.stage}RECV_{letter}{p.microbatch}")] * (p.stage == device)
                    events += [(start, f"{sender}SEND_{letter}{p.microbatch}")] * (sender == device)
        written = [cell for cell in row.split(",") if "SEND" in cell or "RECV" in cell]
        assert written == [cell for _, cell in sorted(events)], device
    assert "recv" in EXPORTERS["megatron"].export(timeline)[".megatron.py"]
    with pytest.raises(
        BadInput, match="does not keep their order; chrome-trace, megatron, program, torch-csv-comms can"
    ):
        EXPORTERS["torch-csv"].export(timeline)


def test_a_transfer_is_drawn_on_both_devices_in_its_own_colour() -> None:
    problem = _two_stages(on="compute", both=True)
    timeline = simulate(problem, HEURISTICS["1f1b"].order(problem))
    sent = [box for box in boxes_of(timeline) if box.sends]
    assert sorted((box.device, box.start) for box in sent) == [(0, 2), (0, 8), (1, 2), (1, 8)]
    drawn = [box for box in boxes_of_streams(timeline, lanes(problem)) if box.meaning == MEANINGS[-1]]
    assert sorted((int(box.top), box.start) for box in drawn) == [(0, 2), (0, 8), (1, 2), (1, 8)]
    page = page_of(timeline)
    assert "Transfer to another device" in {entry["name"] for entry in page["legend"]}
    assert {style["colour"] for style in page["styles"] if style["task"] == "transfer"} == {to_hex(TRANSFER)}


def test_passes_in_an_order_that_can_never_run_are_a_deadlock() -> None:
    problem = _two_stages(on="compute", both=True)
    forward, backward = (tuple(Pass(kind, s, 0) for s in range(2)) for kind in (F, BW))
    with pytest.raises(Deadlock, match=r"BW0\.0"):
        simulate(problem, schedule_of([[backward[0], forward[0]], [forward[1], backward[1]]]))
