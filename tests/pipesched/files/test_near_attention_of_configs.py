"""Layers with sliding windows or chunks, as configurations of transformers and Megatron's arguments say them."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.model_configs.hugging_face import from_hugging_face
from pipesched.files.model_configs.megatron_arguments import arguments_of, from_megatron
from tests.support.in_turn import in_turn
from tests.support.published_models import hf

FULL, SLIDING = "full_attention", "sliding_attention"


def attention(kind: str, **keys: Any) -> dict[str, Any]:
    """Return the window's keys of a configuration of 12 layers."""
    document = hf("", 12, 64, 4, 4, 96, 1000, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32)
    found = from_hugging_face(document | {"model_type": kind} | keys, "config.json").model["attention"]
    return {key: found[key] for key in ("window", "chunk", "full_layers") if key in found}


@in_turn(
    ("kind", "keys", "found"),
    [
        ("gpt_oss", {"sliding_window": 128}, {"window": 128, "full_layers": 2}),
        ("gpt_oss", {"sliding_window": 128, "layer_types": [SLIDING, FULL] * 6}, {"window": 128, "full_layers": 2}),
        ("gemma2", {"sliding_window": 4096}, {"window": 4096, "full_layers": 2}),
        ("gemma3_text", {"sliding_window": 1024}, {"window": 1024, "full_layers": 6}),
        ("gemma3_text", {"sliding_window": 512, "sliding_window_pattern": 3}, {"window": 512, "full_layers": 3}),
        ("cohere2", {"sliding_window": 4096}, {"window": 4096, "full_layers": 4}),
        ("olmo3", {"sliding_window": 4096}, {"window": 4096, "full_layers": 4}),
        ("exaone4", {"sliding_window": 4096, "sliding_window_pattern": "LLLG"}, {"window": 4096, "full_layers": 4}),
        ("exaone4", {"sliding_window": None, "sliding_window_pattern": "LLLG"}, {}),
        ("mistral", {"sliding_window": 4096}, {"window": 4096}),
        ("mistral", {"sliding_window": None}, {}),
        ("phi3", {"sliding_window": 2047}, {"window": 2047}),
        ("qwen2", {"sliding_window": 4096}, {}),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 4}, {}),
        (
            "qwen2",
            {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 4},
            {"window": 4096, "full_layers": [0, 1, 2, 3]},
        ),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": True}, {}),  # the first 28 layers are full
        ("qwen3_moe", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 2}, {"window": 64}),
        ("dots1", {"sliding_window": 64, "max_window_layers": 12}, {}),
        ("dots1", {"max_window_layers": 10}, {"window": 4096, "full_layers": [*range(10)]}),
        ("smollm3", {"sliding_window": 64, "no_rope_layers": [1, 0] * 6}, {}),
        (
            "smollm3",
            {"sliding_window": 64, "use_sliding_window": True, "no_rope_layers": [1, 0] * 6},
            {"window": 64, "full_layers": [*range(0, 12, 2)]},
        ),
        (
            "exaone4",
            {"sliding_window": 64, "sliding_window_pattern": "LLLGL"},
            {"window": 64, "full_layers": [3, 8, 11]},
        ),
        ("mistral", {}, {"window": 4096}),
        ("gpt_oss", {}, {"window": 128, "full_layers": 2}),
        ("llama", {}, {}),
        ("llama4_text", {}, {"chunk": 8192, "full_layers": 4}),
        ("llama4_text", {"attention_chunk_size": 64, "no_rope_layers": []}, {"chunk": 64, "full_layers": 4}),
        (
            "llama4_text",
            {"attention_chunk_size": 64, "no_rope_layers": [0] + [1] * 11},
            {"chunk": 64, "full_layers": [0]},
        ),
        (
            "ministral3",
            {"sliding_window": 32, "layer_types": [FULL] + [SLIDING] * 10 + [FULL]},
            {"window": 32, "full_layers": [0, 11]},
        ),
        ("ministral3", {"sliding_window": 32, "layer_types": [FULL] * 12}, {}),
    ],
)
def test_windows_of_transformers(kind: str, keys: dict[str, Any], found: dict[str, Any]) -> None:
    """By the rule of each class of configurations."""
    assert attention(kind, **keys) == found


def megatron(**values: Any) -> dict[str, Any]:
    base = {"num_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 1000}
    found = from_megatron(base | values, "job.yaml").model["attention"]
    return {key: found[key] for key in ("window", "full_layers") if key in found}


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"window_size": "127,0"}, {"window": 128}),
        ({"window_size": [127, 0], "window_attn_skip_freq": 2}, {"window": 128, "full_layers": 2}),
        ({"window_size": "(1023, 0)", "window_attn_skip_freq": "3"}, {"window": 1024, "full_layers": 3}),
        (
            {"window_size": ["127", "0"], "window_attn_skip_freq": "([0]*1+[1]*5)"},
            {"window": 128, "full_layers": [0]},
        ),
        ({"window_size": "127,0", "window_attn_skip_freq": [1, 1, 0, 1, 1, 0]}, {"window": 128, "full_layers": 3}),
        ({"window_size": "127,0", "window_attn_skip_freq": "None"}, {"window": 128}),
        ({"window_size": "127,0", "window_attn_skip_freq": "([1]*2+[0])*2"}, {"window": 128, "full_layers": 3}),
        ({"window_size": "127,0", "window_attn_skip_freq": "([1, 0])*3"}, {"window": 128, "full_layers": 2}),
        ({"window_size": "127,0", "window_attn_skip_freq": [True, False] * 3}, {"window": 128, "full_layers": 2}),
        ({"window_size": "127,0", "hybrid_layer_pattern": "*-*-"}, {"window": 128}),
        ({"window_size": "-1,0"}, {}),
        ({"window_size": "None"}, {}),
        ({"window_attn_skip_freq": 2}, {}),
    ],
)
def test_windows_of_megatron(values: dict[str, Any], found: dict[str, Any]) -> None:
    """As `is_layer_window_attention` of Megatron-Core reads them."""
    assert megatron(**values) == found


@pytest.mark.parametrize(
    ("values", "mistake"),
    [
        ({"window_size": "wide"}, "window_size: found 'wide'; allowed: two whole numbers, such as 127,0"),
        ({"window_size": "127,0", "window_attn_skip_freq": "x"}, "window_attn_skip_freq: found 'x'; allowed: a whole"),
        ({"window_size": "127,0", "window_attn_skip_freq": 0}, "window_attn_skip_freq: found 0; allowed: a whole"),
        ({"window_size": "127,0", "window_attn_skip_freq": [1]}, "0 or 1 for each of the 6 layers"),
        ({"window_size": "127,0", "window_attn_skip_freq": "[1]*9**9**9"}, "0 or 1 for each of the 6 layers"),
        ({"window_size": "127,0", "window_attn_skip_freq": "[1]*1000000000000"}, "0 or 1 for each of the 6 layers"),
        ({"window_size": "127,0", "window_attn_skip_freq": "f(6)"}, "0 or 1 for each of the 6 layers"),
        (
            {"window_size": "127,0", "window_attn_skip_freq": 2, "hybrid_layer_pattern": "*-*-"},
            "window_attn_skip_freq: found with a hybrid layer pattern; allowed: without",
        ),
    ],
)
def test_mistakes_of_megatron_s_windows(values: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        megatron(**values)
    assert mistake in caught.value.mistakes[0]


def test_lists_of_a_script_keep_their_brackets() -> None:
    script = """ARGS=(
        --num-layers 8
        --window-size 127,0
        --window-attn-skip-freq ([1]*3+[0]*1)*2
        --moe-layer-freq '([0]*1+[1]*7)'
        --tensor-model-parallel-size 2 )"""
    found = arguments_of(script)
    assert found["window_attn_skip_freq"] == "([1]*3+[0]*1)*2"
    assert found["moe_layer_freq"] == "([0]*1+[1]*7)"
    assert found["tensor_model_parallel_size"] == "2"


@pytest.mark.parametrize(
    ("kind", "keys", "mistake"),
    [
        (
            "ministral3",
            {"sliding_window": 8, "layer_types": [FULL] * 2},
            "layer_types: found 2; allowed: one for each of",
        ),
        ("llama4_text", {"no_rope_layers": [0, 1]}, "no_rope_layers: found 2; allowed: one for each of 12 layers"),
        ("ministral3", {"sliding_window": 8, "layer_types": "x"}, "layer_types: found 'x'; allowed: a list"),
    ],
)
def test_lists_that_do_not_fit_the_layers_are_refused(kind: str, keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        attention(kind, **keys)
    assert len(caught.value.mistakes) == 1 and mistake in caught.value.mistakes[0]


def test_a_number_of_layers_above_the_limit_makes_no_list() -> None:
    document = hf("mistral", 10**9, 64, 4, 4, 96, 1000)
    with pytest.raises(BadInput, match="number of layers: found 1000000000; allowed: up to 10000"):
        from_hugging_face(document, "config.json")
