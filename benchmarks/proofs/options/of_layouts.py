"""`layouts` of a tiny model on a few devices: figures of all rows, and the recommended plan against all partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

from benchmarks.matrix.exact.model import Exact
from benchmarks.matrix.plan_run import in_fractions
from benchmarks.proofs.options.by_hand import best_plan, value_of_schedule
from benchmarks.proofs.options.claim import holds, number, same
from benchmarks.proofs.options.drawn import Asked, answer_of
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml

_SMALL = Fraction(1, 10**7)
# Without pieces, and with memory for all activations.
_UNUSED = ("recompute", "attention", "attention_backward", "kept_for_later")
_SIZES = ("tensor", "context", "pipeline", "data")


def layouts(asked: Asked) -> Sequence[str]:
    """`layouts --for --batch --microbatch-size --SIZE -o`: sizes, bounds, memory, and files that `check` accepts."""
    random, out = asked.random, asked.folder / "out"
    gpus, total, target = random.choice((1, 2, 2, 4, 8)), random.choice((2, 4, 8)), random.choice(("", "", "megatron"))
    words = ["--gpus", str(gpus), "--hardware", random.choice(("h100-80gb", "a100-80gb")), "--sequence", "512"]
    if random.random() < 0.5:
        words += ["--microbatches", str(total)]
    else:
        words += ["--batch", str(total), "--microbatch-size", random.choice(("1", "1,2"))]
    given = random.choice(((), (("pipeline", 2),), (("tensor", 1), ("data", 1)), (("pipeline", 3),)))
    words += [word for size, value in given for word in (f"--{size}", str(value))]
    words += ["--for", target] * bool(target)
    try:
        answer = asked.answer("layouts", *words, "-o", str(out), limits=("--time-limit", "3"))
    except BadInput:
        # A pipeline of three, or a size that leaves no layout of so few devices and micro-batches.
        assert any(gpus % value or total < value for _, value in given) or given == (("tensor", 1), ("data", 1)), words
        return ("refused size",)
    for row in answer["rows"]:
        _judge(row, gpus, total, given, batch="--batch" in words)
    if not (out / "plan.json").exists():
        return ("no plan",)
    for command, name in (("check", "plan.json"), ("check", "schedule.json"), ("validate", "schedule.json")):
        assert answer_of(command, str(out / name), "--json")["code"] == 0, f"{command} refuses our own {name}"
    best = answer["best"]
    seen = same("layouts", best["value"], value_of_schedule(out / "schedule.json"))
    optimum = _optimum(out, best["choices"])
    # A runtime runs fewer orders: its value is no less than the optimum, and its bound may be above it.
    if target and optimum is not None and optimum.least is not None:
        assert Fraction(best["value"]) >= optimum.least * (1 - _SMALL), f"{best['value']} below {float(optimum.least)}"
    return [*seen, *(() if target else holds("layouts: plan", best, optimum))]


def _judge(row: Mapping[str, Any], gpus: int, total: int, given: Sequence[tuple[str, int]], *, batch: bool) -> None:
    """Assert what the figures of a row must be among themselves."""
    name = " ".join(f"{key} {row[key]}" for key in _SIZES)
    assert prod(row[key] for key in _SIZES) == gpus, f"{name} are not {gpus} devices"
    assert all(row[key] == value for key, value in given), f"{name}, where {given} was given"
    done = row["microbatches"] * row["data"] * (row["microbatch_size"] if batch else 1)
    assert done == total, f"{name}: {done} of {total} in a step"
    step, bound = row["step"], number(row["step_lower_bound"])
    if step is None:
        assert not row["fits"] and row["reason"], f"{name}: no step and no reason"
        return
    parts = sum(step[key] for key in ("pipeline", "exchange", "optimizer"))
    assert abs(parts - step["total"]) <= 1e-6 * step["total"], f"{name}: parts of {step} come to {parts}"
    assert bound is None or bound <= Fraction(step["total"]) * (1 + _SMALL), f"{name}: bound {bound} above its step"
    least = number(row["lower_bound"])
    assert least is None or least <= Fraction(step["pipeline"]) * (1 + _SMALL), f"{name}: bound above its pipeline"


def _optimum(out: Any, choices: Sequence[Mapping[str, Any]]) -> Exact | None:
    """Return the optimum of the plan file written, from the costs of its layers; None where there are too many plans.

    Memory is ample, so that recomputation only takes time.
    """
    layers = out / "layers.yaml"
    answer_of("layers", str(out / "model.yaml"), "-o", str(layers), "--json")
    costs: Any = read_yaml(layers.read_text(encoding="utf-8"), "layers")
    model: Any = read_yaml((out / "model.yaml").read_text(encoding="utf-8"), "model")
    own = [
        {key: in_fractions(value) for key, value in layer.items() if key not in _UNUSED} for layer in costs["layers"]
    ]
    found = list[Exact]()
    for choice in choices:
        plan = {
            "devices": int(model["devices"]), "microbatches": int(model["microbatches"]), "layers": own,
            "placement": choice["placement"], "chunks": choice["chunks"], "transfer": in_fractions(costs["transfer"]),
        }  # fmt: skip
        best = best_plan(plan)
        if best is None:
            return None
        found.append(best)
    least = min((one.least for one in found if one.least is not None), default=None)
    return Exact(least, min((one.most for one in found if one.most is not None), default=None))


OPTIONS: Mapping[str, Callable[[Asked], Sequence[str]]] = {"layouts": layouts}
