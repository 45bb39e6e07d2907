"""Layouts of a model on so many devices against all products of sizes, and what each is refused for."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.model_configs.layouts import Layout, layouts_of
from pipesched.files.model_configs.model_config import ModelConfig

SEQUENCE = 24  # which 2 * 8 does not divide


def model(heads: int, kv_heads: int | None, experts: int | None, layers: int = 12) -> ModelConfig:
    attention = {"heads": heads} | ({} if kv_heads is None else {"kv_heads": kv_heads})
    keys: dict[str, Any] = {"layers": layers, "attention": attention}
    return ModelConfig("m", keys | ({} if experts is None else {"experts": {"number": experts}}))


@pytest.mark.parametrize(
    ("config", "gpus", "microbatches"),
    [
        (model(8, 2, None), 16, 64),
        (model(12, None, 6), 12, 6),
        (model(32, 32, 64, layers=2), 32, 8),
        (model(16, 1, None), 24, 9),
    ],
)
def test_layouts_are_all_products(config: ModelConfig, gpus: int, microbatches: int) -> None:
    attention, experts = config.model["attention"], config.model.get("experts", {"number": 1})["number"]
    heads, groups = attention["heads"], attention.get("kv_heads", attention["heads"])
    expected = {
        Layout(t, c, p, d, e)
        for t, c, p, d in product(range(1, gpus + 1), repeat=4)
        if t * c * p * d == gpus and t * c <= 8 and SEQUENCE % (2 * c if c > 1 else 1) == 0
        for e in range(1, gpus + 1)
        if p <= config.model["layers"] + 2 and microbatches % d == 0
        if heads % t == 0 and (groups % t == 0 or t % groups == 0) and experts % e == 0 and (t * c * d) % e == 0
    }
    found = layouts_of(config, gpus, microbatches, SEQUENCE, {})
    assert set(found) == expected and len(found) == len(expected) > 0
    fixed = layouts_of(config, gpus, microbatches, SEQUENCE, {"pipeline": 4, "data": None})
    assert set(fixed) == {one for one in expected if one.pipeline == 4}


def test_a_given_size_goes_beyond_what_is_searched() -> None:
    found = layouts_of(model(32, None, None), 32, 8, SEQUENCE, {"tensor": 16, "context": 2})
    assert found == [Layout(16, 2, 1, 1, 1)] and str(found[0]) == "TP16 CP2 PP1 DP1"


def test_no_layout_is_said_with_what_is_allowed() -> None:
    with pytest.raises(BadInput, match=r"found no layout of 16 GPUs with --tensor 3; allowed: .* 8 heads"):
        layouts_of(model(8, None, None), 16, 64, SEQUENCE, {"tensor": 3, "data": None})
