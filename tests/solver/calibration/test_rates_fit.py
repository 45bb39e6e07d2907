"""Rates fitted to measured durations: known ones are found back, with errors that cover what runs scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.measured.table import CONFIGS
from pipesched.errors import BadInput
from pipesched.files.model_configs.hardware_table import DEVICES, SHARES
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.files.model_configs.read_config import read_config
from pipesched.layers.measured_step import MeasuredStep
from solver.calibration.observation import of_layers, of_passes, of_step
from solver.calibration.predicted_step import partition_of, plan_of, predicted_seconds, problem_of, with_rates
from solver.calibration.rates_fit import RatesFit, fit_rates

DENSE, EXPERTS = (read_config(str(CONFIGS / f"{name}.json")) for name in ("llama3-8b", "qwen3-30b-a3b"))
TABLE = DEVICES["h100-80gb"]
H100 = Wanted(1, 1, "h100-80gb", TABLE)
# Rates that are not the table's.
REACHED = round(0.82 * TABLE.products, 3)
TRUE = {"products": REACHED, "attention": 0.85 * TABLE.attention, "tensor_share": 0.75 * TABLE.tensor_share}


def step(pipeline: int = 1, microbatches: int = 8, size: int = 1, chunks: int = 1, **more: Any) -> MeasuredStep:
    names = ("tensor", "context", "expert", "data")
    sizes = tuple((name, more.pop(name, 1)) for name in names)
    return MeasuredStep("a step", 1.0, sizes, pipeline, chunks, size, microbatches, **more)


# Layouts that differ in what takes their time.
LAYOUTS = [
    step(), step(tensor=2), step(tensor=4, size=2), step(tensor=8, microbatches=16), step(4, tensor=2),
    step(sequence=16384), step(2, 4, sequence=32768, tensor=4), step(2, chunks=2, recompute="full"),
]  # fmt: skip


def measured(layouts: Sequence[MeasuredStep], rates: Mapping[str, float], noise: float = 0) -> list[MeasuredStep]:
    """The steps that devices with these rates would take."""
    random, own = Random(1), with_rates(H100, rates)
    return [
        replace(one, seconds=predicted_seconds(one, plan_of(one, DENSE, own)) * random.lognormvariate(0, noise))
        for one in layouts
    ]


def fitted(steps: Sequence[MeasuredStep]) -> RatesFit:
    return fit_rates([of_step(one, DENSE) for one in steps], H100)


def test_of_the_layers_of_a_stage_so_many_are_recomputed() -> None:
    """Half of them, or a third rounded up, take as much less time, and keep their activations."""
    whole, half, third = (step(2, recompute="full", recompute_every=every) for every in (1, 2, 3))
    plan = plan_of(whole, DENSE, H100)
    counts = [
        [one.layers for own in partition_of(each, plan).recompute for one in own] for each in (whole, half, third)
    ]
    assert counts == [[16, 16], [8, 8], [6, 6]]
    some = [replace(each, recompute_layers=7) for each in (whole, half, third)]
    first = [[one.layers for own in partition_of(each, plan).recompute for one in own] for each in some]
    assert first == [[7, 7], [7, 7], [6, 6]]
    kinds = read_config(str(CONFIGS / "deepseek-v3.json"))
    mixed = step(8, recompute="full", recompute_layers=4, partition=(9, *[8] * 5, 8, 6 + kinds.model["layers"] - 61))
    first_stage = partition_of(mixed, plan_of(mixed, kinds, H100)).recompute[0]
    assert [(one.layer, one.layers) for one in first_stage] == [
        ("dense", 3),
        ("moe", 1),
    ]  # the first four, of two kinds
    none, half_s, whole_s = (predicted_seconds(one, plan_of(one, DENSE, H100)) for one in (step(2), half, whole))
    assert whole_s - none == pytest.approx(2 * (half_s - none), rel=0.01)


def test_known_rates_are_found_back() -> None:
    true = TRUE
    fit = fitted(measured(LAYOUTS, true))
    found = {one.name: one for one in fit.rates}
    for name, value in true.items():
        assert found[name].value == pytest.approx(value, rel=0.05), name
        assert getattr(fit.device, name) == found[name].value
    assert fit.mean_error() < 0.004 < 0.1 < fit.mean_error(before=True)


def test_errors_cover_the_true_rates_where_steps_scatter() -> None:
    true = TRUE
    found = {one.name: one for one in fitted(measured(LAYOUTS, true, 0.03)).rates}
    for name, value in true.items():
        error = found[name].error
        assert error is not None and abs(found[name].value / value - 1) < 3 * error, name
    few = {one.name: one for one in fitted(measured(LAYOUTS[:2], true, 0.03)).rates}
    assert (few["products"].error or 0) > (found["products"].error or 1) and few["data_share"].error is None


def test_a_rate_that_nothing_depends_on_stays_and_says_so() -> None:
    found = {one.name: one for one in fitted(measured(LAYOUTS[:3], {"products": REACHED})).rates}
    assert found["expert_share"].error is None and found["moe_launch"].error is None
    assert found["expert_share"].value == found["expert_share"].before == DEVICES["h100-80gb"].expert_share
    assert found["products"].value == pytest.approx(REACHED, rel=0.03) and not found["products"].vague


def test_one_run_that_something_else_slowed_moves_rates_little() -> None:
    steps = measured(LAYOUTS[:5], {"products": REACHED})
    slowed = [replace(one, seconds=3 * one.seconds) if at == 4 else one for at, one in enumerate(steps)]
    assert fitted(slowed).device.products == pytest.approx(REACHED, rel=0.05)


def test_shares_end_at_all_of_the_data_sheet() -> None:
    h20 = Wanted(1, 1, "h20-96gb", DEVICES["h20-96gb"])
    seconds = [predicted_seconds(one, plan_of(one, DENSE, h20)) / 1.5 for one in LAYOUTS[:3]]
    fit = fit_rates(
        [of_step(replace(one, seconds=own), DENSE) for one, own in zip(LAYOUTS, seconds, strict=False)], h20
    )
    assert fit.device.products == 1 and all(one.value <= 1 for one in fit.rates if one.name in SHARES)


def test_passes_and_layers_determine_rates_as_steps_do() -> None:
    ran, true = (
        step(4, 16, tensor=2, sequence=8192),
        with_rates(H100, {"products": REACHED, "attention": 0.9 * TABLE.attention}),
    )
    fit = fit_rates([of_passes(problem_of(ran, plan_of(ran, DENSE, true)), ran, DENSE)], H100)
    assert fit.device.products == pytest.approx(REACHED, rel=0.03) and len(fit.times) == 8
    alone, own = step(sequence=8192), with_rates(H100, {"products": REACHED, "moe_launch": 3.0})
    plan = plan_of(alone, EXPERTS, own)
    fit = fit_rates([of_layers(plan.model, 0.001, alone, EXPERTS, H100)], H100)
    assert [one.name for one in fit.times] == [f"a step: {way} of {name}" for name in ("moe", "head")
                                               for way in ("forward", "backward")]  # fmt: skip
    assert fit.device.products == pytest.approx(REACHED, rel=0.08) and fit.mean_error() < 0.03
    with pytest.raises(BadInput, match=r"found types of layers layer, head; allowed: as many .* moe, head"):
        of_layers(plan_of(alone, DENSE, own).model, 0.001, alone, read_config(str(CONFIGS / "deepseek-v3.json")), H100)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (step(40), "found 40 stages; allowed: up to 34, a layer each"),
        (step(2, partition=(17, 16)), r"partition: found 33 layers; allowed: all of 1 embedding, 32 layer, 1 head"),
        (step(2, schedule="1f1c"), "1f1b"),
    ],
)
def test_what_no_step_can_be(wrong: MeasuredStep, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        fitted([wrong])
