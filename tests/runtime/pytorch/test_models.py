"""Models as users write them, run in processes: what passes between stages, their types, their small gradients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from inspect import signature
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from commands.options.model import SIZES
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from runtime.running.job import Job, ModelSpec
from tests.support.later import later
from tests.support.makers import problem, random_order
from tests.support.run_jobs import TIMES, Ran, from_rows, job, run_all, with_comms

torch = later("torch")
gradient_check, load_model, models, weight_split, reference = (
    later(f"runtime.pytorch.{name}", "torch")
    for name in ("gradient_check", "load_model", "models", "passes.weight_split", "reference")
)
DTYPES = "float64", "float32", "bfloat16", "float16"


def theirs(name: str) -> ModelSpec:
    return ModelSpec(f"tests.support.their_models:{name}")


def jobs() -> Iterator[Job]:
    v, both = problem(2, 3, placement="v-shape", times=TIMES), problem(2, 4, placement="bidirectional", times=TIMES)
    v_order, both_order = random_order(v, Random(11)), random_order(both, Random(12))
    for name in ("dicts", "tuples", "dropout"):
        yield job(v, v_order, f"right {name}", model=theirs(name))
        yield job(both, both_order, f"right {name} both ways", model=theirs(name), split="store")
    yield job(v, v_order, "right autocast", model=theirs("autocast"), split="store")
    yield job(v, v_order, "right small", model=theirs("small"))
    yield job(v, v_order, "right logged", model=theirs("logged"))
    for dtype in ("float32", "bfloat16"):
        yield job(v, v_order, f"right {dtype}", dtype=dtype)
    linear = problem(2, 3)
    order = HEURISTICS["1f1b"].order(linear)
    rows = [[cell for cell in row if "REDUCE_GRAD" not in cell] for row in with_comms(linear, order)]
    yield from_rows(job(linear, order, model=theirs("small")), rows, "small, not divided")
    yield replace(from_rows(job(linear, order), rows, "bfloat16, not divided"), dtype="bfloat16")


@cache
def ran() -> tuple[Ran, set[str]]:
    with TemporaryDirectory() as folder:
        os.environ["PIPESCHED_TEST_LOG"] = folder
        return run_all(list(jobs())), {path.name for path in Path(folder).iterdir()}


def test_every_kind_of_model_has_the_gradients_of_the_reference() -> None:
    wrong = []
    for name, (_, outcome) in ran()[0].items():
        if name.startswith("right"):
            wrong += [f"{name}: {line}" for line in outcome.complaints()]
            assert outcome.compared > 0
            assert (outcome.random != ()) == ("dropout" in name)
    assert not wrong, "\n".join(wrong)


def test_a_process_builds_the_stages_it_runs_and_no_other() -> None:
    assert ran()[1] == {"0.0", "1.1", "2.1", "3.0"}


@pytest.mark.parametrize("name", ["small, not divided", "bfloat16, not divided"])
def test_wrong_gradients_are_seen_however_small_or_coarse(name: str) -> None:
    outcome = ran()[0][name][1]
    assert outcome.worst_loss is not None
    assert outcome.worst_loss.fits
    assert outcome.worst_gradient is not None
    assert not outcome.worst_gradient.fits
    assert outcome.worst_gradient.value > 1.5 * outcome.worst_gradient.norm  # three times what it should be


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_a_gradient_is_judged_by_its_own_norm_and_type(name: str, size: float) -> None:
    dtype = getattr(torch, name)
    right = size * torch.linspace(-1, 1, 64, dtype=torch.float64).to(dtype)
    scale = float(torch.linalg.vector_norm(right, dtype=torch.float64))

    def fits(found: Any, wanted: Any = right) -> bool:
        held = reference.StepReference({}, {(0, "w"): reference.Gradient(wanted, 0.0 if wanted is None else scale)})
        result = gradient_check.compare_step(0, 4, {0: 0}, {}, {(0, "w"): found}, held)
        return not result.missing and (result.worst_gradient is None or result.worst_gradient.fits)

    assert fits(right)
    assert fits((right.double() * (1 + gradient_check.tolerance(dtype, 4) / 8)).to(dtype))
    assert not fits((right.double() * (1 + 4 * gradient_check.tolerance(dtype, 4))).to(dtype))
    assert not fits(torch.zeros_like(right))
    assert not fits(right * float("nan"))
    assert not fits(None)
    assert fits(None, None)
    assert fits(torch.zeros_like(right), None)
    assert not fits(right, None)


def test_a_missing_micro_batch_is_more_than_rounding() -> None:
    for name in DTYPES:
        assert gradient_check.tolerance(getattr(torch, name), 24) < 1 / 24


def test_the_options_say_the_sizes_of_the_small_gpt() -> None:
    defaults = {name: one.default for name, one in signature(models.gpt).parameters.items() if name in SIZES}
    said = {name: "one a stage" if default is None else default for name, default in defaults.items()}
    assert {name: text.partition("(")[2] for name, text in SIZES.items()} == {
        name: f"default: {default})" for name, default in said.items()
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", ["package.module:function"]),
        (":absent", ["cannot be imported"]),
        (":Pair", ["no function with a parameter `stages`"]),
        (":short", ["found 2 stages; the schedule needs 3"]),
        (":nothing", ["found a NoneType"]),
        (":tied", ["0.weight of stage 0 and 0.weight of stage 2 are one parameter (tied weights)"]),
        (
            ":broken",
            ["raised KeyError: 'no weights for 3 stages'", "their_models.py, line", "in broken: raise KeyError"],
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_said_with_its_place(name: str, said: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        load_model.load_model(f"tests.support.their_models{name}", 3)
    for words in said:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"), [({"layers": 2}, "layers: found 2"), ({"hidden": 10, "heads": 4}, "heads: found 4")]
)
def test_sizes_that_do_not_fit_are_said(options: dict[str, int], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        models.gpt(3, **options)


def test_a_module_that_does_not_parse_is_said_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no_python.py").write_text("x = 1\ndef make(stages:\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="cannot be imported"):
        load_model.load_model("no_such_module:make", 3)
    with pytest.raises(BadInput, match=r"(?s)raised SyntaxError.*no_python\.py, line 2"):
        load_model.load_model("no_python:make", 3)


def test_a_stored_split_leaves_the_layers_what_they_are() -> None:
    alone = torch.nn.Linear(4, 3)
    weight, store = alone.weight, weight_split.store_weight_gradients(alone)
    assert (type(alone), alone.in_features, alone.weight) == (torch.nn.Linear, 4, weight)
    alone(torch.ones(2, 4)).sum().backward()
    assert weight.grad is None
    store()()
    assert torch.equal(weight.grad, torch.full((3, 4), 2.0))
