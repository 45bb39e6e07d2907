"""Ends of 1F1B and interleaved 1F1B without a timeline, against the simulator; long runs skip what only shifts."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from heuristics.catalogue import schedule_named
from pipesched.files.problem_file import problem_from
from pipesched.schedule.metrics import device_reach, measure
from pipesched.simulation.simulator import simulate
from solver.planning.quick import order_ends
from solver.planning.quick.chunk_memory import peaks
from solver.planning.quick.order_ends import WholeArray, interleaved_ends, one_f_one_b_ends
from tests.support.in_turn import in_turn


def ends(
    forward: list[int], backward: list[int], lag: int, m: int, p: int, kind: type = np.int64, frozen: int = 0
) -> list[int]:
    v = len(forward) // p
    gradients = [0 if stage < frozen else lag for stage in range(p * v)]
    columns: list[WholeArray] = [np.array(each, kind).reshape(v, p).T[None] for each in (forward, backward, gradients)]
    if v == 1:
        one, two, three = (column[:, :, 0] for column in columns)
        return [int(end) for end in one_f_one_b_ends(one, two, lag, three, m)[0]]
    return [int(end) for end in interleaved_ends(columns[0], columns[1], lag, columns[2], m)[0]]


def drawn(rng: Random) -> tuple[dict[str, Any], str]:
    v = rng.choice([1, 1, 2, 3, 4])
    p = rng.randint(1 if v == 1 else 2, 6)
    m, most = rng.randint(1, 40) if v == 1 else p * rng.randint(1, 8), rng.choice([1, 3, 50, 1000])
    times = {key: [rng.randint(0, most) for _ in range(p * v)] for key in ("forward", "backward")}
    document = {
        "devices": p, "microbatches": m, "placement": "interleaved" if v > 1 else "linear",
        "times": times | {"transfer": rng.choice([0, 1, rng.randint(0, 2 * most)])},
        "memory": {"capacity": 10**6, "activation": [rng.randint(1, 9) for _ in range(p * v)]},
    }  # fmt: skip
    times["forward"][0] += 1
    return document | ({"chunks": v} if v > 1 else {}), "1f1b" if v == 1 else "interleaved-1f1b"


@in_turn("seed", range(60))
def test_ends_and_peaks_are_the_simulator_s(seed: int) -> None:
    document, name = drawn(Random(seed))
    problem = problem_from(document)
    timeline = simulate(problem, schedule_named(name).order(problem))
    times, p, m = document["times"], document["devices"], document["microbatches"]
    own = ends(times["forward"], times["backward"], times["transfer"], m, p)
    assert own == [device_reach(timeline, device)[1] * problem.tick for device in range(p)]
    activation = np.array(document["memory"]["activation"]).reshape(-1, p).T
    assert list(peaks(activation, m)) == [int(each) for each in measure(timeline).peak_memory]


@in_turn("seed", range(60))
def test_ends_with_frozen_stages_are_the_simulator_s(seed: int) -> None:
    """To the first stages, which train nothing, no gradient is sent: its time is not waited for."""
    rng = Random(f"frozen {seed}")
    document, name = drawn(rng)
    times, p, m = document["times"], document["devices"], document["microbatches"]
    frozen = rng.randint(1, len(times["forward"]))
    times["transfer"] += 1
    problem = problem_from({key: document[key] for key in document if key != "memory"} | {"frozen": frozen})
    timeline = simulate(problem, schedule_named(name).order(problem))
    backward = [0] * frozen + times["backward"][frozen:]
    own = ends(times["forward"], backward, times["transfer"], m, p, frozen=frozen)
    assert own == [device_reach(timeline, device)[1] * problem.tick for device in range(p)]


@pytest.mark.parametrize("chunks", [1, 3])
def test_alike_stages_skip_most_steps_and_end_as_the_closed_form_says(
    chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, skip = list[int](), order_ends._Steps.skip

    def counted(self: Any, step: int, *columns: WholeArray) -> tuple[int, WholeArray]:
        steps.append(step)
        return skip(self, step, *columns)

    monkeypatch.setattr(order_ends._Steps, "skip", counted)
    p, m = 4, 40_000
    found = ends([2] * (p * chunks), [3] * (p * chunks), 0, m, p)
    assert max(found) == (m * chunks + p - 1) * 5
    assert len(steps) < 200


def test_numbers_beyond_64_bits() -> None:
    small = [1, 3, 2, 5]
    large = [2**70 * each for each in small]
    assert ends(large, large, 0, 9, 4, object) == [2**70 * end for end in ends(small, small, 0, 9, 4)]
