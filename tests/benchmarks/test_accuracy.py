"""Derived durations beside published measurements: no change makes them worse unsaid, and the figures are right."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import (
    EXPECTED,
    FITTED,
    LEFT_OUT,
    OTHERS,
    PAGE,
    RATES,
    RECORD,
    expected,
    figures_of_others,
    left_out,
    record,
)
from benchmarks.measured.figures import Compared, errors, memory, orders
from benchmarks.measured.fit import devices_with, least_rates, names, prior_of, table_rates
from benchmarks.measured.judged import JUDGED, judged_table
from benchmarks.measured.path_steps import path_step
from benchmarks.measured.prediction import Prediction, config_of, predicted, rates_of, step_of, training_of, wanted_of
from benchmarks.measured.rivals import rivals
from benchmarks.measured.stored import predictions_text, rounded, stored, stored_predictions
from benchmarks.measured.table import (
    BLIND,
    CONFIGS,
    FIFTH_BLIND,
    FOURTH_BLIND,
    HOLDOUT,
    SECOND_BLIND,
    TABLE,
    THIRD_BLIND,
    UNSEEN,
    read_table,
    source_of,
)
from benchmarks.measured.tables import page
from pipesched.files.model_configs.hardware_table import DEVICES, SUSTAINED
from pipesched.layers.derived.data_links import ByNodes
from tests.support.daily import daily

# Predictions of these rows are made on one of so many days; their stored ones give all figures every day.
_DAYS = 16
_TABLES = {FITTED: TABLE, LEFT_OUT: TABLE, **OTHERS}


@pytest.mark.parametrize("name", _TABLES)
def test_predictions_are_those_that_the_page_was_written_from(name: str) -> None:
    """`python -m benchmarks.accuracy --write` records a change on purpose. Of every table a part a day, spread over it."""
    known, rows = stored_predictions()[name], read_table(_TABLES[name])
    assert [*known] == [row.id for row in rows]
    today = [Compared(row, predicted(row)) for row in daily(rows, _DAYS)]
    for one in left_out(today) if name == LEFT_OUT else today:
        own, found = known[one.row.id], one.found
        assert (found.seconds, found.peak, found.capacity) == pytest.approx(
            (own.seconds, own.peak, own.capacity), rel=1e-4
        ), one.row.id


def test_the_page_and_its_figures_are_those_of_the_predictions() -> None:
    known = stored_predictions()
    found, without, *others = (stored(read_table(path), known[name]) for name, path in _TABLES.items())
    assert record(found, without, others) == json.loads(RECORD.read_text(encoding="utf-8"))
    assert page(found, without, *others).strip() in PAGE.read_text(encoding="utf-8")
    hybrids = others[list(OTHERS).index("of hybrid models")]
    assert expected([*without, *hybrids]) == json.loads(EXPECTED.read_text(encoding="utf-8"))


def test_first_predictions_stand_beside_those_of_today() -> None:
    assert [own.file for own in JUDGED] == [path.name for name, path in OTHERS.items() if name != "held out"]
    row = next(one for one in read_table() if one.seconds)
    found = [Compared(replace(row, seconds=2.0), Prediction(seconds, 1, 2)) for seconds in (2.2, 3.0)]
    first, *_ = judged_table([found] * len(JUDGED)).splitlines()[2:]
    own = JUDGED[0]
    cells = [str(own.rows), own.recorded, own.formulas, "14.3", "18.1", "83", own.dependent, "2", "30.0", "50.0"]
    assert first == f"| `{own.file}`: {own.title} | {' | '.join(cells)} |"


def test_stored_predictions_are_read_as_written_and_one_that_changes_is_seen(tmp_path: Path) -> None:
    rows = read_table(HOLDOUT)
    found = stored(rows, stored_predictions()["held out"])
    one = found[7]
    found[7] = one._replace(found=replace(one.found, seconds=1.1 * one.found.seconds))
    path = tmp_path / "predictions.csv"
    path.write_text(predictions_text({"held out": found}), encoding="utf-8")
    known = stored_predictions(path)["held out"]
    assert known == {each.row.id: each.found for each in rounded(found)} and [*known] == [row.id for row in rows]
    figures = figures_of_others(stored(rows, known), "held out")
    stands = json.loads(RECORD.read_text(encoding="utf-8"))
    assert figures["mean error, held out"] != stands["mean error, held out"]


def test_figures_of_rows_made_up() -> None:
    row = next(one for one in read_table() if one.group and one.seconds)
    rows = [replace(row, seconds=seconds, microbatch_size=size) for size, seconds in ((1, 10.0), (2, 22.0), (4, 50.0))]
    # A sequence takes 10, 11, 12.5 by the measurements and 12, 9, 13 by the predictions.
    found = [Compared(one, Prediction(steps, 1, 2)) for one, steps in zip(rows, (12.0, 18.0, 52.0), strict=True)]
    own = errors(found)
    assert (own.rows, own.median, own.near) == (3, pytest.approx(1.04), 1)
    assert own.mean == pytest.approx((0.2 + 4 / 22 + 0.04) / 3) and own.p90 == pytest.approx(0.2)
    (order,) = orders(found)
    assert (order.rows, order.correlation, order.loss) == (3, 0.5, pytest.approx(0.1)) and not order.of_schedules
    lacked = [Compared(replace(row, seconds=None), Prediction(1, peak, 2)) for peak in (1, 2, 3, 4)]
    ran = Compared(replace(row, allocated=2.0), Prediction(1, 3, 2))
    assert memory([ran, *lacked])[:4] == (1, 1.0, 4, 0.5)
    assert memory([ran, *lacked])[4:] == (1, 1.5, 1.0)


def test_the_table_of_devices_has_the_fitted_rates() -> None:
    found = json.loads(RATES.read_text(encoding="utf-8"))
    assert table_rates() == found["rates"]
    assert {*found["without"]} == {source_of(row) for row in read_table() if row.seconds}
    likely = devices_with({"products/b200": 0.5, "memory_share": 0.7})
    assert likely["gb200-186gb"].products == 0.5 and likely["h200-141gb"].memory_share == pytest.approx(0.7)
    assert likely["mi300x-192gb"].memory_share != 0.7 and likely["h100-80gb"].products != 0.5


def test_a_fit_finds_the_rates_that_rows_were_made_with() -> None:
    """Rates that no row depends on stay where they are likely, and one row far off the others moves little."""
    pytest.importorskip("scipy")
    every, of = names(), np.random.default_rng(7)
    likely = np.array([log(prior_of(name).likely) for name in every])
    made = likely + np.where(np.arange(len(every)) < 3, -0.1, 0.0)
    slopes = np.where(np.arange(len(every)) < 3, of.uniform(-1, 0, (200, len(every))), 0.0)
    off = slopes @ (likely - made)
    weights = np.full(200, 50.0)
    found = least_rates(off, slopes, likely, weights)
    assert found == pytest.approx(made, abs=0.002)
    off[0] += 3
    assert least_rates(off, slopes, likely, weights) == pytest.approx(made, abs=0.02)
    low = least_rates(off + 5, slopes, likely, weights)
    assert all(prior_of(name).most >= exp(one) - 1e-9 for name, one in zip(every, low, strict=True))


def test_a_step_along_its_critical_path_is_the_one_simulated() -> None:
    """With rates a little off as with those of the table: of plain, interleaved and zero-bubble schedules, of experts,
    and of rows that recompute."""
    rows = {row.id: row for row in read_table()}
    moved = devices_with({name: rate * 1.02 for name, rate in table_rates().items()})
    for name in ("r625", "r628", "r633", "r757", "r763", "r778", "r689", "r700", "r725", "r842"):
        if name in rows and rows[name].seconds:
            found = path_step(rows[name])
            assert found.seconds(DEVICES) == pytest.approx(predicted(rows[name]).seconds, rel=1e-9), name
            assert found.seconds(moved) == pytest.approx(predicted(rows[name], CONFIGS, moved).seconds, rel=2e-3), name
            assert found.seconds(moved) < found.seconds(DEVICES)


def test_products_that_no_row_has_reach_their_part_of_what_the_gpu_sustains() -> None:
    """Rates of others do not move them; VBoost is a rate of its own, for the device of that name alone."""
    pytest.importorskip("scipy")
    every = names()
    start = np.array([log(prior_of(name).likely) for name in every])
    off, slopes = np.zeros(400), np.zeros((400, len(every)))
    slopes[:, every.index("products/a100")] = -1
    off[:] = log(0.7) - start[every.index("products/a100")]
    found = dict(zip(every, np.exp(least_rates(off, slopes, start, np.full(400, 20.0))), strict=True))
    assert found["products/a100"] == pytest.approx(0.7, rel=0.01)
    for family, sustained in SUSTAINED.items():
        assert found[f"products/{family}"] == pytest.approx(0.87 * sustained, rel=1e-3)
    plain, boosted = (devices_with({"vboost": 1.2})[name].products for name in ("h100-80gb", "h100-80gb-vboost"))
    assert boosted == pytest.approx(1.2 * plain) and plain == DEVICES["h100-80gb"].products


def test_rows_left_out_are_predicted_with_rates_that_never_saw_them() -> None:
    rows = [row for row in read_table() if row.source.startswith("MooreThreads") and row.seconds]
    found = [Compared(row, Prediction(1, 1, 1)) for row in rows[:2]]
    known = {one.row.id: one.found.seconds for one in left_out(found)}
    own = {row.id: predicted(row).seconds for row in rows[:2]}
    assert len(known) == 2 and all(abs(known[name] / own[name] - 1) > 0.02 for name in known)


def test_rows_that_no_rate_is_fitted_to_are_none_of_the_table() -> None:
    others = HOLDOUT, UNSEEN, BLIND, SECOND_BLIND, THIRD_BLIND, FOURTH_BLIND, FIFTH_BLIND
    tables = [read_table(), *map(read_table, others)]
    known = [{(r.model, r.gpu, r.gpus, r.sizes, r.pipeline, r.precision, r.seconds) for r in rows} for rows in tables]
    assert all(len(rows) > 50 and sum(row.seconds is None for row in rows) <= 1 for rows in tables[1:])
    assert not any(one & other for one, other in combinations(known, 2))


def test_what_notes_say_of_a_runtime_becomes_keys() -> None:
    rows = {row.id: row for row in read_table()}
    eager, kernel = training_of(rows["r138"]), training_of(rows["r134"])
    assert eager["fused_norms"] is False and "fused_norms" not in kernel and kernel["loss"] == "gathered"
    assert (step_of(rows["r704"]).recompute, step_of(rows["r704"]).recompute_every) == ("layernorm+mlp", 2)
    assert training_of(rows["r842"])["sharding"] == "parameters"
    assert [training_of(rows[name]).get("reduction_bytes") for name in ("r842", "r704", "r138")] == [2, 4, None]
    assert rates_of(rows["r689"]) == {"hidden_share": 0.7, "dispatch": "expert"}  # on H100 without CUDA graphs
    assert rates_of(rows["r691"]) == {"hidden_share": 0.7, "moe_wait": 0} and rates_of(rows["r687"]) == {}
    held = {row.id: row for row in read_table(HOLDOUT)}
    whole = {"hidden_share": 0.7, "dense_launch": 0, "moe_launch": 0, "moe_wait": 0}  # a graph of the whole iteration
    assert rates_of(held["n022"]) == whole and rates_of(held["n093"]) == {"moe_wait": 0}
    assert rates_of(held["n127"]) == {"dispatch": "expert"}  # plain all-to-all waits for its host
    assert training_of(held["n022"])["fused_experts"] is True and "fused_experts" not in training_of(held["n093"])
    assert rates_of(rows["r842"])["attention_tflops"] == pytest.approx(0.35 * 989)
    assert "attention_tflops" not in rates_of(rows["r868"])  # an A100
    assert rates_of(held["n020"])["moe_launch"] == 0 and training_of(held["n029"])["sharding"] == "parameters"
    gate = next(row for row in read_table(UNSEEN) if row.id.endswith("u125"))
    assert config_of(gate).model["experts"].items() >= {"number": 256, "groups": 32, "groups_per_token": 1}.items()
    assert config_of(rows["r822"]).model["experts"]["groups_per_token"] == 4
    tuned = next(row for row in read_table(UNSEEN) if "LoRA of rank 8" in row.runtime)
    stopped = {one.source: config_of(one).fsdp or "early_stop" in training_of(one) for one in rows.values()}
    assert {name.split()[0] for name, stops in stopped.items() if stops} == {
        "mosaicml/llm-foundry", "pytorch/torchtitan", "NVIDIA/dgxc-benchmarking"
    }  # fmt: skip
    assert rows["u055"].gpu == "h100-80gb-vboost" and rows["u143"].gpu == "h100-80gb"
    assert training_of(tuned)["lora"] == {"rank": 8, "modules": ["linear_qkv"]}
    third = {row.id: row for row in read_table(THIRD_BLIND)}
    assert training_of(third["d036"])["activation_input_bytes"] == 1 and step_of(third["d036"]).recompute_layers is None
    assert (step_of(third["d032"]).recompute, step_of(third["d032"]).recompute_layers) == ("full", 21)
    assert "activation_input_bytes" not in training_of(third["d042"])
    other = {row.id: row for row in read_table(FOURTH_BLIND)}
    assert training_of(other["e000"])["sharding"] == "none" and "sharding" not in training_of(other["e096"])
    assert rates_of(other["e000"])["gather_hidden_share"] == 0
    assert rates_of(other["e098"]) == {"data_hidden_share": 0} and rates_of(other["e096"]) == {}
    assert wanted_of(other["e096"]).device.between_nodes == 12.5  # half of the table's A100
    measured = wanted_of(other["e000"]).device.data_bandwidth
    assert measured == ByNodes(((1, 436), (4, 160), (16, 85), (64, 33)))


def test_others_are_judged_by_the_same_rows() -> None:
    rows = [row for row in read_table() if row.source.startswith(("MooreThreads", "arXiv 2205.05198"))]
    found = [Compared(row, Prediction((row.seconds or 0) * 1.1, (row.allocated or 0) * 1.2, 1)) for row in rows]
    first, second = rivals(found)
    assert (first.name, first.rows, round(first.own, 6), round(first.own_peak or 0, 6)) == ("SimuMax", 15, 0.1, 0.2)
    assert (second.name, second.rows) == ("Calculon", 4) and 0.01 < second.error < 0.1
