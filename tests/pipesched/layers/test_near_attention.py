"""Layers whose attention is to near tokens alone: a sliding window, or chunks (Gemma 3, GPT-OSS, Llama 4)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.kernels import attention_seconds, module_seconds
from pipesched.layers.derived.model_operations import model_operations
from pipesched.layers.derived.operations import attention_operations
from pipesched.layers.derived.shape import (
    Attention,
    Experts,
    Hardware,
    LayerKind,
    Parallel,
    Shape,
    Training,
    Window,
)

SHAPE = Shape(12, 2048, 32000, Attention(16, 4, 128), 8192, 12)
HARDWARE = Hardware(flops=5e14, memory=Fraction(80 * 2**30), pipeline=5e10, attention_flops=4e14)
DOCUMENT: dict[str, Any] = {
    "devices": 2,
    "microbatches": 4,
    "placement": "linear",
    "model": {
        "layers": 6, "hidden": 1024, "vocabulary": 32000, "attention": {"heads": 8}, "ffn": 4096, "sequence": 4096,
    },
    "hardware": {"sustained_tflops": 400, "memory": 80, "pipeline_bandwidth": 40},
}  # fmt: skip


def near(**attention: Any) -> dict[str, Any]:
    return DOCUMENT | {"model": DOCUMENT["model"] | {"attention": {"heads": 8} | attention}}


def layers(document: dict[str, Any]) -> list[str]:
    return [layer.name for layer in plan_problem_from(document).model.sequence][1:-1]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("tokens", [1, 3, 64, 100, 257, 1000])
def test_reach_is_twice_the_mean_number_of_keys(tokens: int, chunked: bool) -> None:
    """Counted token by token; as in the whole sequence, half of the key of a token that has all others is left out."""
    sequence = 257
    keys = sum(at + 1 - (at - at % tokens if chunked else max(0, at - tokens + 1)) for at in range(sequence))
    ends = Fraction(1 if chunked else Fraction(min(tokens, sequence), sequence))
    assert Window(tokens, chunked=chunked).reach(sequence) == Fraction(2 * keys, sequence) - ends
    assert Window(sequence + tokens, chunked=chunked).reach(sequence) == sequence


def test_attention_takes_the_time_of_the_keys_that_it_reads() -> None:
    where, window = (Training(32768), Parallel(), HARDWARE), Window(1024, frozenset({5, 11}))
    shape = replace(SHAPE, window=window)
    full, near = (attention_seconds(shape, *where, windowed)[0] for windowed in (False, True))
    assert full == attention_seconds(SHAPE, *where)[0]
    assert attention_operations(shape, Training(32768), Parallel(), True) * 32768 == (
        attention_operations(shape, Training(32768), Parallel(), False) * window.reach(32768)
    )
    # Short runs of keys are slower a key.
    assert full * float(window.reach(32768)) / 32768 < near < full / 10
    assert module_seconds(shape, *where, "core_attn", LayerKind(False, True)) == near


def test_operations_of_the_model_count_each_kind() -> None:
    shape = replace(SHAPE, window=Window(512, frozenset(range(2, 12, 3))))
    saved = 8 * (
        attention_operations(shape, Training(4096), Parallel(), False)
        - attention_operations(shape, Training(4096), Parallel(), True)
    )
    # Forward once, backward twice.
    assert model_operations(SHAPE, Training(4096)) - model_operations(shape, Training(4096)) == 3 * saved


def test_runs_of_layers_are_of_one_kind() -> None:
    shape = replace(SHAPE, dense_layers=1, experts=Experts(8, 2, 0, 512), window=Window(64, frozenset({3, 4})))
    near, full = LayerKind(True, True), LayerKind(True)
    assert shape.runs == [(LayerKind(False, True), 1), (near, 2), (full, 2), (near, 7)]
    assert [shape.name_of(kind) for kind, _ in shape.runs] == ["dense-window", "moe-window", "moe", "moe-window"]


@pytest.mark.parametrize(
    ("attention", "full"),
    [
        ({"window": 1024, "full_layers": 3}, {2, 5}),
        ({"window": 1024, "full_layers": [0, 5]}, {0, 5}),
        ({"chunk": 1024, "full_layers": 4}, {3}),
        ({"window": 1024}, set()),
        ({"window": 4096}, {*range(6)}),  # no shorter than the sequence
        ({"window": 1024, "full_layers": 1}, {*range(6)}),
    ],
)
def test_which_layers_of_a_plan_are_full(attention: dict[str, Any], full: set[int]) -> None:
    assert layers(near(**attention)) == ["layer" if at in full else "layer-window" for at in range(6)]


def test_a_plan_of_windows_takes_less_time_and_the_same_memory() -> None:
    plan = plan_problem_from(near(window=512, full_layers=3))
    own = {layer.name: layer for layer in plan.model.layers}
    assert own["layer-window"].forward < own["layer"].forward
    assert own["layer-window"].backward < own["layer"].backward
    assert own["layer-window"].weight == own["layer"].weight
    assert own["layer-window"].activation == own["layer"].activation
    assert replace(own["layer"], count=6) in plan_problem_from(DOCUMENT).model.layers
    assert "model: in 4 of 6 layers a token attends to a window of 512 tokens" in plan.assumptions
    chunks = plan_problem_from(near(chunk=512, full_layers=3)).assumptions
    assert "model: in 4 of 6 layers a token attends to its own chunk of 512 tokens" in chunks


def test_stored_scores_are_those_of_all_tokens() -> None:
    """They are computed whole and masked, so that no layers differ."""
    document = near(window=512, full_layers=3)
    plan = plan_problem_from(document | {"model": document["model"] | {"flash": False}})
    assert [layer.name for layer in plan.model.layers] == ["embedding", "layer", "head"]
    assert not any("window" in line for line in plan.assumptions)


@pytest.mark.parametrize("lora", [False, True])
def test_layers_are_frozen_by_the_name_that_they_have_without_a_window(lora: bool) -> None:
    document = near(window=512, full_layers=3)
    more = {"lora": {"rank": 4}} if lora else {}
    plan = plan_problem_from(document | {"model": document["model"] | {"frozen": ["embedding", "layer"]} | more})
    own = {layer.name: layer for layer in plan.model.layers}
    assert own["layer"].forward_only and own["layer-window"].forward_only
    assert own["layer"].memory == own["layer-window"].memory
    with pytest.raises(BadInput, match="found layer-window; allowed: the model"):
        plan_problem_from(document | {"model": document["model"] | {"frozen": ["layer-window"]}})


@pytest.mark.parametrize("key", ["window", "chunk"])
def test_pieces_of_sequences_are_refused(key: str) -> None:
    with pytest.raises(BadInput, match="sequence_chunks: found with window or chunk; allowed: without"):
        plan_problem_from(near(**{key: 512}) | {"sequence_chunks": [2]})


@pytest.mark.parametrize(
    ("attention", "mistake"),
    [
        ({"window": 4, "chunk": 4}, "model.attention.chunk: found 4 with window; allowed: one of them"),
        ({"full_layers": 2}, "model.attention.full_layers: found without window or chunk; allowed: with one of them"),
        ({"window": 4, "full_layers": 0}, "found 0; allowed: a whole number of at least 1, or a list of layers"),
        ({"window": 4, "full_layers": [6]}, "found layer 6; allowed: up to 5, the last of the 6 layers"),
        ({"window": 4, "full_layers": [1, 1]}, "found layer 1 twice; allowed: each layer once"),
        ({"window": 0}, "model.attention.window: found 0; allowed: a whole number of at least 1"),
        ({"window": 4, "full_layers": "x"}, "model.attention.full_layers: found 'x'; allowed: a whole number"),
    ],
)
def test_mistakes_are_a_line_each(attention: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan_problem_from(near(**attention))
    assert len(caught.value.mistakes) == 1
    assert mistake in caught.value.mistakes[0]
