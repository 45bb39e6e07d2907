"""The comparison of schedules that hide communication: the same layers on every placement, and what each exposes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from benchmarks.cases.kimi_k2 import example, on_placement, with_communication, work
from benchmarks.expert_parallel import free_transfers, rows, steady
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate

MINI = replace(example("kimi-k2-mini"), microbatches=12)


def test_every_placement_has_the_same_layers() -> None:
    """Twice in a bidirectional one, whose directions take half of the micro-batches each."""
    for where, times in (("interleaved", 1), ("v-shape", 1), ("linear", 1), ("bidirectional", 2)):
        placed = on_placement(MINI, where)
        assert work(placed) == tuple(times * ticks for ticks in work(MINI)), where
        assert sum(placed.static) == times * sum(MINI.static), where


def test_the_full_model_has_61_layers_and_a_balanced_output_layer() -> None:
    full = example("kimi-k2")
    layers = [sum(spec.name.startswith("mlp") and spec.ticks > 0 for spec in s.tasks[0][1]) for s in full.stages]
    assert sum(layers) == 61
    assert max(stage.compute_ticks(stage.tasks[0][0]) for stage in full.stages) == 1414


def test_communication_in_proportion_to_computation() -> None:
    compute, other = work(with_communication(MINI, Fraction(3, 2)))
    assert compute == work(MINI)[0]
    assert abs(Fraction(other, compute) - Fraction(3, 2)) < Fraction(1, 200)


def test_what_published_schedules_expose() -> None:
    found = {row.name: row for row in rows(MINI, None)}
    for row in found.values():
        broken = {violation.rule for violation in validate(row.timeline)}
        assert broken <= {"memory"}
        assert row.bound <= row.makespan or broken
        assert free_transfers(row.timeline) <= row.makespan
    # Passes in turn hide nothing but what two forwards of the warm-up hide of each other; pairs hide nearly all.
    assert steady(found["1F1B"].timeline) == 1
    assert steady(found["VPP + 1 (Kimi K2)"].timeline) < Fraction(2, 100)
    assert found["VPP + 1 (Kimi K2)"].exposed < found["DualPipeV"].exposed < found["VPP"].exposed
    # Parameters twice do not fit.
    needed = {
        name: max(map(sum, zip(measure(row.timeline).peak_quanta, row.timeline.problem.static, strict=True)))
        for name, row in found.items()
    }
    capacity = MINI.pools[0].capacity
    assert capacity is not None
    assert needed["VPP + 1 (Kimi K2)"] <= capacity < needed["DualPipe"]
