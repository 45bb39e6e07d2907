"""Kimi K2's offload: what is copied beside which slot, four activations at most whatever tasks take, and when it waits."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.problem.passes import OFFLOAD, RELOAD, B, F, W
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KIMI = HEURISTICS["kimi-k2-offload"]
TASKS = {
    "forward": [("attn", ""), ("dispatch", "comm"), ("mlp", ""), ("combine", "comm")],
    "backward": [("combine", "comm"), ("mlp", ""), ("dispatch", "comm"), ("attn", "")],
}


def problem(devices: int, chunks: int, microbatches: int, **more: object) -> Problem:
    times = {"forward": 10, "backward": 10, "weight": 10}
    shape = {"devices": devices, "microbatches": microbatches, "placement": "interleaved", "chunks": chunks}
    return problem_from(shape | {"times": times} | more)


def run(one: Problem) -> Timeline:
    timeline = simulate(one, KIMI.order(one))
    assert validate(timeline) == []
    return timeline


def test_beside_each_slot_the_forward_before_goes_out_and_the_next_backward_comes_back() -> None:
    """Two devices, two chunks: the first device warms up with five forwards; both passes of a pair are then listed in turn."""
    order = run(problem(2, 2, 4, memory={"offload": {"out": 5, "in": 5}})).schedule.passes_on(0)
    assert " ".join(map(str, order)) == (
        "F0.0 F0.1 O0.0 F2.0 O0.1 F2.1 F0.2 F0.3 B2.0 W2.0 O0.2 L0.0 F2.2 B2.1 W2.1 O0.3 L0.1 F2.3 B0.0 W0.0 "
        "B0.1 W0.1 B2.2 W2.2 L0.2 B2.3 W2.3 L0.3 B0.2 W0.2 B0.3 W0.3"
    )


def drawn(random: Random) -> Problem:
    """A problem of passes of one task or of several, with copies of any length on one stream or two, own or shared."""
    devices, chunks = random.randint(2, 4), random.randint(2, 3)
    stages = devices * chunks
    copies = {way: [random.randint(0, 12) for _ in range(stages)] for way in ("out", "in")}
    on: object = random.choice((["d2h", "h2d"], "copy", {"stream": "pcie", "devices": [0, 1]}))
    decide = {"offload": random.choice(("free", "always"))}
    memory = {"capacity": 4, "activation": 1, "offload": copies | {"on": on}, "decide": decide}
    shape = {"devices": devices, "microbatches": random.randint(1, 9), "placement": "interleaved", "chunks": chunks}
    if random.random() < 0.5:
        return problem_from(shape | {"memory": memory, "times": {"forward": 3, "backward": 4, "weight": 2}})
    tasks: dict[str, list[dict[str, object]]] = {
        kind: [
            {"name": name, "time": [random.randint(1, 6) for _ in range(stages)]} | ({"on": on} if on else {})
            for name, on in parts
        ]
        for kind, parts in TASKS.items()
    }
    weight = [{"name": f"{name}-w", "time": random.randint(1, 4), "after": name} for name in ("mlp", "attn")]
    return problem_from(shape | {"memory": memory, "streams": ["compute", "comm"], "tasks": tasks | {"weight": weight}})


def test_four_activations_are_enough_whatever_tasks_and_copies_take() -> None:
    """The capacity is four, and the validator lets no order pass that may hold more if tasks take other times."""
    random, most = Random(15), 0
    for _ in range(40):
        peaks = measure(run(drawn(random))).peak_quanta
        most = max(most, *peaks)
    assert most == 4


def test_what_stays_on_the_device_is_needed_within_three_slots() -> None:
    timeline = run(problem(2, 2, 8, memory={"offload": {"out": 5, "in": 5}}))
    kept = 0
    for device in range(2):
        order = timeline.schedule.passes_on(device)
        away = {p[1:] for p in order if p.kind is OFFLOAD}
        assert away == {p[1:] for p in order if p.kind is RELOAD}
        slot, before, begun = 0, None, {}
        for p in (p for p in order if p.kind in (F, B, W)):
            # A backward shares the slot of the forward before it.
            slot += p.kind is F or (p.kind is B and before is not F)
            before = p.kind
            if p.kind is F:
                begun[p[1:]] = slot
            elif p.kind is B:
                assert (p[1:] in away) == (slot - begun[p[1:]] > 3)
                kept += p[1:] not in away
    assert kept


def test_copies_shorter_than_a_slot_cost_next_to_nothing() -> None:
    """The example: a copy is half of a slot, and 0.2 % of the time is all that offload costs."""
    example = read_problem(EXAMPLES / "kimi-k2-offload-mini.yaml")
    kept = HEURISTICS["kimi-k2"]
    without = measure(simulate(example, kept.order(example)))
    found = measure(run(example))
    assert found.makespan_ticks <= 1.002 * without.makespan_ticks
    assert found.peak_quanta == (4 * 59,) * 4
    assert max(without.peak_quanta) == 12 * 59


def test_it_needs_offload_on_every_stage() -> None:
    with pytest.raises(DoesNotApply, match=r"memory\.offload"):
        KIMI.order(problem(2, 2, 4))
