"""Memory of layers from measured peaks: found where the peaks tell, refused with what to measure where they do not."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.peaks_file import peaks_from
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.memory_peaks import Peak, PeakStage, Unknown
from pipesched.measurement.fitted_layers import fitted_layers, fitted_text
from pipesched.measurement.memory_fit import fit_memory

# Of a Mixture-of-Experts model of 3 dense and 59 other layers, in MiB: memory, activation, recomputed activation.
HELD = {"dense": (866, 479, 30), "moe": (10691, 765, 30)}
CONSTANT, FIRST, LAST = 1500, 700, 2300
LAYERS = [{"name": "dense", "count": 3}, {"name": "moe", "count": 9}]


def peaks(counts: list[int], again: list[int], microbatches: int, noise: Random | None = None) -> list[float]:
    """The peaks of 1F1B, by the sums in words."""
    names, found, at = ["dense"] * 3 + ["moe"] * 9, [], 0
    for stage, number in enumerate(counts):
        flight = min(microbatches, len(counts) - stage)
        amount = CONSTANT + FIRST * (stage == 0) + LAST * (stage == len(counts) - 1)
        for position, name in enumerate(names[at : at + number]):
            memory, kept, recomputed = HELD[name]
            amount += memory + flight * (recomputed if position < again[stage] else kept)
        found.append(amount + (noise.uniform(-20, 20) if noise else 0))
        at += number
    return found


def run(counts: list[int], again: list[int], microbatches: int = 8, noise: Random | None = None) -> dict[str, Any]:
    return {
        "partition": counts,
        "recompute": again,
        "microbatches": microbatches,
        "peaks": peaks(counts, again, microbatches, noise),
    }


CUTS = [([4, 3, 3, 2], [3, 1, 2, 0]), ([2, 2, 4, 4], [0, 2, 3, 0]), ([5, 3, 2, 2], [5, 0, 0, 1])]
TRUE = {
    Unknown("memory", "dense"): 866,
    Unknown("memory", "moe"): 10691,
    Unknown("activation", "moe"): 765,
    Unknown("recomputed", "moe"): 30,
    Unknown("activation", "dense"): 479,
    Unknown("constant"): 1500,
    Unknown("first"): 700,
    Unknown("last"): 2300,
}


def test_exact_peaks_give_the_numbers_back() -> None:
    file = peaks_from({"layers": LAYERS, "runs": [run(*cut) for cut in CUTS] + [run(*CUTS[0], microbatches=2)]})
    fit = fit_memory(file.peaks)
    assert {one: fit.values[one] for one in TRUE} == pytest.approx(TRUE)
    assert fit.largest < 1e-6 and fit.clamped == ()
    layers = {layer.name: layer for layer in fitted_layers(file, fit)}
    assert float(layers["moe"].memory) == pytest.approx(10691)
    assert float(layers["moe"].mode("full").keeps) == pytest.approx(30 / 765)
    assert [float(layers[name].memory) for name in ("embedding", "head")] == pytest.approx([700, 2300])


def test_noise_stays_within_the_standard_errors() -> None:
    rng = Random(7)
    runs = [run(*cut, microbatches=m, noise=rng) for cut in CUTS for m in (1, 2, 4, 8)]
    fit = fit_memory(peaks_from({"layers": LAYERS, "runs": runs}).peaks)
    assert fit.errors is not None
    for one, value in TRUE.items():
        assert abs(fit.values[one] - value) < 4 * fit.errors[one]
    assert 2 < fit.root_mean_square < 20


def test_one_type_of_layer_needs_six_peaks() -> None:
    """Memory, activation, recomputed activation, constant, first, last: five equations are refused, six are enough."""
    runs = [
        {"partition": [2, 3, 3], "recompute": [0, 1, 0], "microbatches": 3, "peaks": [40, 44, 45]},
        {"partition": [3, 2, 3], "recompute": [1, 0, 0], "microbatches": 1, "peaks": [42.5, 29, None]},
    ]
    document: dict[str, Any] = {"layers": [{"name": "t", "count": 8}], "runs": runs}
    with pytest.raises(BadInput):
        fit_memory(peaks_from(document).peaks)
    runs.append({"partition": [3, 4, 1], "microbatches": 1, "recompute": [0, 4, 0], "peaks": [None, 47, None]})
    fit = fit_memory(peaks_from(document).peaks)
    assert list(fit.values.values()) == pytest.approx([10, 2, 0.5, 5, 3, 4])
    assert fit.errors is None and fit.largest < 1e-9


def named(line: str) -> Peak:
    """The peak that a line asks for, measured."""
    match = re.search(r"the (first|last) device|a (middle) device", line)
    assert match
    layers = re.search(r"with (\d+) (\w+) layers", line)
    again, flight = re.search(r"(\d+) of them recomputed", line), re.search(r"(\d+) micro-batch", line)
    assert layers and flight
    number, name, k = int(layers[1]), layers[2], int(flight[1])
    r = int(again[1]) if again else 0
    memory, kept, recomputed = HELD[name]
    place = match[1] or match[2]
    amount = CONSTANT + FIRST * (place == "first") + LAST * (place == "last")
    amount += number * memory + k * ((number - r) * kept + r * recomputed)
    stage = PeakStage({name: number}, {name: r}, k)
    return Peak((stage,), place == "first", place == "last", Fraction(amount), line)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_asked_for_is_enough(seed: int) -> None:
    """Measuring what the refusal names, again and again, ends in the true numbers."""
    rng = Random(seed)
    file = peaks_from({"layers": LAYERS, "runs": [run(*rng.choice(CUTS), microbatches=rng.choice([1, 2, 8]))]})
    measured = list(rng.sample(file.peaks, rng.randint(1, 4)))
    for _ in range(4):
        try:
            fit = fit_memory(measured)
            break
        except BadInput as refusal:
            asked = [line for line in refusal.mistakes if line.startswith("measure next: ")]
            assert asked
            measured += map(named, asked)
    assert fit.values == pytest.approx({one: TRUE.get(one, 30) for one in fit.values})


def test_what_comes_out_below_zero_is_set_to_zero() -> None:
    rows = [(2, 1, 11), (3, 1, 13), (2, 4, 8), (3, 3, 10), (4, 1, 15)]
    found = [Peak((PeakStage({"t": n}, {}, k),), False, False, Fraction(y), "") for n, k, y in rows]
    fit = fit_memory(found)
    assert fit.clamped == (Unknown("activation", "t"),) and fit.values[Unknown("activation", "t")] == 0
    assert fit.values[Unknown("memory", "t")] > 0


def test_several_stages_of_a_device_add_up() -> None:
    document = {
        "layers": [{"name": "t", "count": 8}],
        "runs": [
            {"partition": [1, 2, 3, 2], "in_flight": [4, 3, 2, 1], "recompute": [{"t": 1}, 0, 2, 0], "peaks": [9, 8]}
        ],
    }
    first, second = peaks_from(document).peaks
    assert first.coefficients() == {
        Unknown("memory", "t"): 4,
        Unknown("activation", "t"): 2,
        Unknown("recomputed", "t"): 4 + 4,
        Unknown("constant"): 1,
        Unknown("first"): 1,
    }
    assert second.coefficients()[Unknown("activation", "t")] == 6 + 2 and second.last and not second.first


def test_the_command_writes_layers_that_a_plan_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers = [{**one, "forward": 2, "backward": 4} for one in LAYERS]
    runs = [run(*cut) for cut in CUTS] + [run(*CUTS[0], microbatches=2)]
    source, written = tmp_path / "peaks.yaml", tmp_path / "layers.yaml"
    source.write_text(json.dumps({"layers": layers, "runs": runs, "memory": {"unit": "MiB", "capacity": 60000}}))
    assert main(["fit-memory", str(source), "--json", "-o", str(written)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["found"]) == 9 and found["root_mean_square"] < 1e-6 and found["files"] == [str(written)]
    plan = plan_problem_from(read_yaml("devices: 4\nmicrobatches: 8\n" + written.read_text(), "written"))
    assert plan.cluster.capacity is not None
    assert [float(room) for room in plan.cluster.capacity] == pytest.approx([58500] * 4)
    assert [layer.name for layer in plan.model.layers] == ["embedding", "dense", "moe", "head"]
    assert plan.model.layers[2].mode("full").time == 2
    assert main(["fit-memory", str(source)]) == 0
    source.write_text(json.dumps({"layers": layers, "runs": runs[:1]}))
    assert main(["fit-memory", str(source)]) == 2


def test_times_that_are_missing_are_left_to_the_user() -> None:
    file = peaks_from({"layers": LAYERS, "runs": [run(*cut) for cut in CUTS] + [run(*CUTS[0], microbatches=2)]})
    text = fitted_text(file, fit_memory(file.peaks))
    assert "forward:" not in text and "backward:" not in text


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "nothing": ({}, 2),
    "no runs": ({"layers": LAYERS, "runs": []}, 1),
    "too many layers": ({"layers": LAYERS, "runs": [run([4, 3, 3, 2], [0] * 4) | {"partition": [4, 4, 4, 4]}]}, 1),
    "peaks of other devices": ({"layers": LAYERS, "runs": [run([4, 3, 3, 2], [0] * 4) | {"peaks": [1, 2, 3]}]}, 2),
    "no partition": ({"layers": LAYERS, "runs": [{"peaks": [1, 2], "microbatches": 3}]}, 1),
    "no micro-batches": ({"layers": LAYERS, "runs": [{"peaks": [1, 2], "partition": [6, 6]}]}, 1),
    "more recomputed than there are": ({"layers": LAYERS, "runs": [run([4, 3, 3, 2], [5, 0, 0, 3])]}, 2),
    "no peak": ({"layers": LAYERS, "runs": [{"peaks": [None, None], "partition": [6, 6], "microbatches": 3}]}, 1),
    "a wrong peak": ({"layers": LAYERS, "runs": [{"peaks": [1, "x"], "partition": [6, 6], "microbatches": 3}]}, 1),
    "more layers than any model has": (
        {
            "layers": [{"name": "t", "count": 10**11}],
            "runs": [{"peaks": [1], "partition": [10**11], "microbatches": 1}],
        },
        1,
    ),
    "an unknown key": ({"layers": LAYERS, "runs": [{"peeks": [1]}]}, 1),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_in_a_file_of_peaks(case: str) -> None:
    document, mistakes = WRONG[case]
    with pytest.raises(BadInput) as refusal:
        peaks_from(document)
    assert len(refusal.value.mistakes) == mistakes, refusal.value
