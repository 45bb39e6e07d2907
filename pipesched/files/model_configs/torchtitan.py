"""Job configurations of torchtitan (TOML): a model named by its flavor, and training settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.model_config import Keys, ModelConfig, without_none
from pipesched.files.schema_errors import shown


def _dense(layers: int, hidden: int, heads: int, kv: int, ffn: int, vocabulary: int, **more: Any) -> dict[str, Any]:
    attention = {"heads": heads, "kv_heads": kv} | ({"head_size": more.pop("head_size")} if "head_size" in more else {})
    return {"layers": layers, "hidden": hidden, "vocabulary": vocabulary, "attention": attention, "ffn": ffn} | more


def _qwen_experts(layers: int, hidden: int, heads: int, ffn: int) -> dict[str, Any]:
    attention = {"heads": heads, "kv_heads": 4, "head_size": 128}
    experts = {"number": 128, "per_token": 8, "ffn": ffn}
    return {"layers": layers, "hidden": hidden, "vocabulary": 151936, "attention": attention, "experts": experts}


def _deepseek(
    layers: int, hidden: int, heads: int, rank: int | None, dense: tuple[int, int], experts: tuple[int, int, int, int]
) -> dict[str, Any]:
    """Return the section `model` of a DeepSeek flavor with so many layers, of this `hidden` size and number of
    attention heads; from 61 layers on its vocabulary is V3's, else V2's.

    `rank` is the rank of the queries' latent (None: none); `dense` the number of dense layers and their width;
    `experts` the number of experts, those that a token uses, shared ones, and the width of one.
    """
    latent = {"heads": heads} | ({"query_rank": rank} if rank else {})
    latent |= {"kv_rank": 512, "key_size": 128, "rope_size": 64, "value_size": 128}
    names = ("number", "per_token", "shared", "ffn")
    vocabulary = 102400 if layers < 61 else 129280
    return {
        "layers": layers, "dense_layers": dense[0], "hidden": hidden, "vocabulary": vocabulary, "ffn": dense[1],
        "attention": latent, "experts": dict(zip(names, experts, strict=True)),
    }  # fmt: skip


# The model's name and flavor in torchtitan's registry of models.
FLAVORS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("llama3", "8B"): _dense(32, 4096, 32, 8, 14336, 128256),
    ("llama3", "70B"): _dense(80, 8192, 64, 8, 28672, 128256),
    ("llama3", "405B"): _dense(126, 16384, 128, 8, 53248, 128256),
    ("qwen3", "0.6B"): _dense(28, 1024, 16, 8, 3072, 151936, head_size=128, tied=True),
    ("qwen3", "1.7B"): _dense(28, 2048, 16, 8, 6144, 151936, head_size=128, tied=True),
    ("qwen3", "4B"): _dense(36, 2560, 32, 8, 9728, 151936, head_size=128, tied=True),
    ("qwen3", "8B"): _dense(36, 4096, 32, 8, 12288, 151936, head_size=128),
    ("qwen3", "14B"): _dense(40, 5120, 40, 8, 17408, 151936, head_size=128),
    ("qwen3", "32B"): _dense(64, 5120, 64, 8, 25600, 151936, head_size=128),
    ("qwen3", "30B-A3B"): _qwen_experts(48, 2048, 32, 768),
    ("qwen3", "235B-A22B"): _qwen_experts(94, 4096, 64, 1536),
    ("deepseek_v3", "16B"): _deepseek(27, 2048, 16, None, (1, 10944), (64, 6, 2, 1408)),
    ("deepseek_v3", "236B"): _deepseek(60, 5120, 128, 1536, (1, 12288), (160, 6, 2, 1536)),
    ("deepseek_v3", "671B"): _deepseek(61, 7168, 128, 1536, (3, 18432), (256, 8, 1, 2048)),
}


# Number formats of `mixed_precision_param` and `mixed_precision_reduce`: as a `dtype`, and bytes of a number.
_FORMATS: Mapping[str, tuple[str, int]] = {"bfloat16": ("bf16", 2), "float16": ("fp16", 2), "float32": ("fp32", 4)}


def from_torchtitan(document: Mapping[str, Any], source: str) -> ModelConfig:
    """Return the model and training settings of a torchtitan job configuration.

    `document` is its content, `source` its name in messages. `BadInput` for an unknown flavor or number format, and
    wrong values.
    """
    sections = {key: document.get(key, {}) for key in ("model", "training", "parallelism")}
    wrong = {key: value for key, value in sections.items() if not isinstance(value, Mapping)}
    if wrong:
        raise BadInput(
            *(f"{source}: {key}: found {shown(value)}; allowed: a table, [{key}]" for key, value in wrong.items())
        )
    named = sections["model"]
    name, flavor = str(named.get("name", "")), str(named.get("flavor", ""))
    model = FLAVORS.get((name, flavor))
    if model is None:
        known = ", ".join(" ".join(one) for one in FLAVORS)
        raise BadInput(f"{source}: model: found {f'{name} {flavor}'.strip() or 'no name and flavor'}; known: {known}")
    keys = Keys(source, {**sections["training"], **sections["parallelism"]})
    settings = {
        "sequence": keys.optional("seq_len"),
        "microbatch_size": keys.optional("pipeline_parallel_microbatch_size"),
        "devices": keys.optional("pipeline_parallel_degree"),
        "tensor": keys.optional("tensor_parallel_degree"),
        "context": keys.optional("context_parallel_degree"),
        "expert": keys.optional("expert_parallel_degree"),
    }
    training = sections["training"]
    dtype, _ = _format(keys, training, "mixed_precision_param")
    _, reduced = _format(keys, training, "mixed_precision_reduce")
    keys.check()
    notes = ("mixed_precision_param: products in 32 bits are counted at the rate of 16",) if dtype == "fp32" else ()
    own = {**model} | ({"dtype": dtype} if dtype else {})
    return ModelConfig(
        f"{name}-{flavor}", own, without_none(settings), notes=notes, fsdp=True, reduction_bytes=reduced
    )  # fmt: skip


def _format(keys: Keys, training: Mapping[str, Any], name: str) -> tuple[str | None, int | None]:
    """Return the number format under `name` in the section `training`, as a `dtype` and in bytes a number.

    Both are None if it is missing or wrong; a wrong value is added to the mistakes of `keys`.
    """
    value = training.get(name)
    if isinstance(value, str) and value in _FORMATS:
        return _FORMATS[value]
    if value is not None:
        keys.mistakes.append(f"{keys.source}: training.{name}: found {shown(value)}; allowed: {', '.join(_FORMATS)}")
    return None, None
