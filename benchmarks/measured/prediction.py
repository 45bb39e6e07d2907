"""Predictions of measured rows: the runtime's own cut and schedule, simulated, on derived durations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path

from benchmarks.measured.table import CONFIGS, Row
from pipesched.files.model_configs.hardware_table import DEVICES, Device
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.files.model_configs.read_config import read_config
from pipesched.layers.derived.data_links import ByNodes
from pipesched.layers.measured_step import MeasuredStep
from pipesched.layers.recompute_rule import MODULES
from pipesched.schedule.metrics import measure
from solver.calibration.predicted_step import plan_of, seconds_of, simulated

_DTYPES = {"fp8-cs": "fp8", "float8+asyncTP": "fp8"}
# What a source publishes of its runtime. Aleph Alpha: 13 billion parameters on one device of 80 GB leave gradients two
# bytes, its head gathers all logits; DeepSpeed adds gradients after the
# products; MPT has FlashAttention's loss, NVIDIA's recipes Transformer Engine's; DeepSeek's
# moments have 16 bits (section 3.3.2), and one kernel quantizes or multiplies the tokens of all experts (DeepGEMM).
# Activation functions of nanotron, Hugging Face's Llama, Megatron-LLaMA and PaddleNLP of 2023 are of several kernels,
# nanotron and Megatron-LLaMA (`--no-gradient-accumulation-fusion`) add gradients after the products.
_RUNTIMES: Mapping[str, Mapping[str, object]] = {
    "Aleph-Alpha": {"gradient_bytes": 2, "loss": "gathered", "fused_activation": False},
    "bigscience": {"fused_accumulation": False},
    "mosaicml": {"loss": "fused"},
    "NVIDIA-NeMo/Megatron-Bridge": {"loss": "fused"},
    "NVIDIA/dgxc-benchmarking": {"loss": "fused"},
    "arXiv 2412.19437": {"optimizer_bytes": 8, "fused_experts": True},
    "huggingface/nanotron": {"fused_activation": False, "fused_accumulation": False},
    "alibaba/Megatron-LLaMA": {"fused_activation": False, "fused_accumulation": False},
    "InternLM/xtuner docs": {"loss": "fused"},
    "InternLM/xtuner xtuner": {"loss": "gathered", "fused_activation": False},
    "Dao-AILab/flash-attention": {"loss": "fused"},
    "LambdaLabsML": {"loss": "fused"},
    "PaddlePaddle/PaddleNLP": {"fused_activation": False},
}
# Whose layers, their sharding and recomputation are PyTorch's own; and XLA's, which drops products that nothing reads.
_FSDP = (
    "mosaicml/llm-foundry", "pytorch/torchtitan", "pytorch/ao", "NVIDIA-NeMo/Automodel", "aws-samples",
    "foundation-model-stack", "jzhang38/TinyLlama",
)  # fmt: skip
# Bytes of a gradient that FSDP reduces: llm-foundry's benchmarks have `mixed_precision: PURE`, IBM's and AWS's
# `bfSixteen`, TinyLlama's Lightning the format of products; `reduce_dtype` of the others is float32.
_REDUCED: Mapping[str, int] = {
    "mosaicml/llm-foundry": 2, "aws-samples": 2, "foundation-model-stack": 2, "jzhang38/TinyLlama": 2,
    "pytorch/torchtitan": 4, "pytorch/ao": 4, "NVIDIA-NeMo/Automodel": 4, "NVIDIA-BioNeMo": 4,
}  # fmt: skip
_XLA = ("NVIDIA/dgxc-benchmarking maxtext", "NVIDIA/JAX-Toolbox", "AI-Hypercomputer/gpu-recipes maxtext")
# Whose runs hide exchange, and the share that stays hidden where a stage's own work can cover it.
_OVERLAPPED = ("NVIDIA-NeMo/Megatron-Bridge", "NVIDIA/NeMo", "NVIDIA/dgxc-benchmarking", "arXiv 2412.19437")
_HIDDEN = 0.7
# Whose runs on Hopper have FlashAttention 2 (torchtitan's `models/attention.py`), which reaches 35 % of an H100 (arXiv
# 2407.08608).
_SECOND_FLASH, _OF_SECOND_FLASH = ("mosaicml/llm-foundry", "pytorch/torchtitan"), 0.35


@dataclass(frozen=True)
class Prediction:
    """Seconds of a step, GiB at the peak, and those that a device has for it."""

    seconds: float
    peak: float
    capacity: float

    @property
    def fits(self) -> bool:
        return self.peak <= self.capacity


# By layout, configuration, training and device.
_MADE: dict[str, Prediction] = {}


def predicted(row: Row, configs: Path = CONFIGS, devices: Mapping[str, Device] = DEVICES) -> Prediction:
    """The step of a row's layout, by the formulas and the rates of devices.

    Measurements of one layout, training and device have the same prediction, which is made once.
    """
    step, config, wanted = step_of(row), config_of(row, configs), wanted_of(row, devices)
    key = repr((replace(step, place="", seconds=0), config, wanted))
    if key not in _MADE:
        plan = plan_of(step, config, wanted)
        run = simulated(step, plan)
        assert plan.cluster.capacity is not None
        peak = max(float(amount) for amount in measure(run.timeline).peak_memory)
        _MADE[key] = Prediction(seconds_of(plan, run), peak, float(plan.cluster.capacity[0]))
    return _MADE[key]


def wanted_of(row: Row, devices: Mapping[str, Device] = DEVICES) -> Wanted:
    """Training and device of a row; its layout is that of `step_of`."""
    training = {**training_of(row), "recompute": []}
    return Wanted(
        row.pipeline, row.microbatches, row.gpu, device_of(row, devices), training=training, rates=rates_of(row)
    )


def device_of(row: Row, devices: Mapping[str, Device] = DEVICES) -> Device:
    """The device of a row, with the network that its source gives or measured."""
    device, given = devices[row.gpu], re.search(r"network of (\d+) Gb/s a device", row.runtime)
    if given:
        device = replace(device, between_nodes=int(given[1]) / 8)
    if match := re.search(r"all-reduce measured at ([^;]+)", row.runtime):
        by_nodes = re.findall(r"(\d+) GB/s on (\d+) node", match[1])
        device = replace(device, data_bandwidth=ByNodes(tuple((int(n), float(rate)) for rate, n in by_nodes)))
    return device


def step_of(row: Row) -> MeasuredStep:
    """The layout of a row."""
    some = re.search(r"(\d+) layers of a stage recomputed", row.runtime)
    return MeasuredStep(
        row.id, inf if row.seconds is None else row.seconds, row.sizes, row.pipeline, row.chunks, row.microbatch_size,
        row.microbatches, row.sequence, row.schedule, _recomputed(row), row.partition,
        2 if _every_other_product(row) else 1, int(some[1]) if some else None,
    )  # fmt: skip


def training_of(row: Row) -> dict[str, object]:
    """Training options of a row, from the table and its source's publication: keys of the section `model`."""
    runtime = row.runtime
    found: dict[str, object] = {"dtype": _DTYPES.get(row.precision, row.precision), "flash": row.flash}
    found |= next((own for source, own in _RUNTIMES.items() if row.source.startswith(source)), {})
    reduced = next((each for source, each in _REDUCED.items() if row.source.startswith(source)), None)
    found |= {} if reduced is None else {"reduction_bytes": reduced}
    found |= _precision_of(runtime)
    if "grad_reduce_in_fp32=False" in runtime or "gradients in 16 bit" in runtime:
        found["gradient_bytes"] = 2
    if "precision-aware optimizer" in runtime:
        found["optimizer_bytes"] = 8
    # Aleph Alpha names its kernels; torchtitan in eager mode has none of its own.
    if ("kernel flash" in runtime and "RMS kernel" not in runtime) or runtime.endswith("; eager"):
        found["fused_norms"] = False
    if "FULL_SHARD" in runtime or "FSDP as" in runtime or "FSDP shards parameters" in runtime:
        found["sharding"] = "parameters"
    elif "SHARD_GRAD_OP" in runtime or "FSDP shards optimizer and gradients" in runtime:  # Llama 3, section 3.3.2
        found["sharding"] = "gradients"
    elif "optimizer not sharded" in runtime:
        found["sharding"] = "none"
    if row.moe and ("CUDA graph of the whole iteration" in runtime or "fused grouped MLP" in runtime):
        found["fused_experts"] = True  # these recipes' `cutedsl_fused_grouped_mlp`
    if row.source.startswith(_XLA):
        found["early_stop"] = True
    if "input of activation functions in 8 bits" in runtime:
        found["activation_input_bytes"] = 1
    if match := re.search(r"LoRA of rank (\d+) on ([\w, ]+)", runtime):
        found["lora"] = {"rank": int(match[1]), "modules": re.findall(r"\w+", match[2])}
        if row.source.startswith("mlcommons"):
            found["weight_bytes"] = 1  # `fp8_params` of the logs
    if not row.sequence_parallel and dict(row.sizes)["tensor"] > 1:
        found["sequence"] = False
    return found


def _precision_of(runtime: str) -> dict[str, object]:
    """The key `precision`, where a row says which parts are in which format; else none."""
    match = re.search(r"precision: ([^;]+)", runtime)
    given = re.findall(r"(\w+)=(\w+)", match[1]) if match else []
    own = {key: int(value) if value.isdecimal() else value for key, value in given}
    return {"precision": own} if own else {}


def _recomputed(row: Row) -> str:
    """None, full, or the modules that every layer recomputes, joined by +."""
    runtime = row.runtime
    if match := re.search(r"recompute (?:of )?([\w, and]+?) not expressible|recompute of ([\w, ]+)", runtime):
        words = re.findall(r"\w+", match[1] or match[2])
        return "+".join(sorted({*words} & {*MODULES}))
    if _every_other_product(row):
        return "layernorm+mlp"
    if row.recompute == "none" and "deepseek" in row.model:
        # DeepSeek (arXiv 2412.19437, sections 3.2.3 and 3.3.3) and NVIDIA's recipes.
        own = {"arXiv 2412.19437": "layernorm+mla_up_proj+moe_act", "NVIDIA-NeMo/Megatron-Bridge": "mla_up_proj"}
        return next((modules for source, modules in own.items() if row.source.startswith(source)), "none")
    return row.recompute


def _every_other_product(row: Row) -> bool:
    """True for torchtitan's selective recomputation: every second product of a layer, and its small operations.

    In a Llama these are the key's, attention's output and one of the block's two up: 37 % of a layer's operations. The
    feed-forward block of every other layer is 40 %.
    """
    return row.recompute == "none" and "selective AC" in row.runtime


def rates_of(row: Row) -> dict[str, object]:
    """Exchange of the row's runtime, as keys of a plan file's section `hardware`.

    NVIDIA's recipes run tensor exchange of dense models in parallel with products (`tp_comm_overlap`); the table says
    which of them run that of experts with the other direction's passes (`overlap_moe_expert_parallel_comm`), have plain
    all-to-all, and launch kernels by CUDA graphs. Where it does not, those of DeepSeek-V3 and Qwen3 235B on several
    nodes hide exchange of experts, and so does DeepSeek's DualPipe.
    """
    sizes, found, runtime = dict(row.sizes), dict[str, object](), row.runtime
    apart = sizes["expert"] > DEVICES[row.gpu].node
    hidden = apart and row.model.startswith(("deepseek", "qwen3-235b"))
    if "CUDA graph" in runtime:
        hidden = "exchange of experts overlapped" in runtime
    if row.source.startswith(_OVERLAPPED) and (hidden or (sizes["tensor"] > 1 and not row.moe)):
        found["hidden_share"] = _HIDDEN
    if match := re.search(r"([\d.]+) % of it hidden", runtime):
        found["hidden_share"] = float(match[1]) / 100
    if "exchange of experts overlapped" in runtime or "asynchronous TP" in runtime or "asyncTP" in row.precision:
        found["hidden_share"] = _HIDDEN
    if "gradients not hidden" in runtime:
        found["data_hidden_share"] = 0
    if row.source.startswith("huggingface/nanotron"):
        found["gather_hidden_share"] = 0  # `ZeroDistributedOptimizer.step` ends with the gathering of weights
    padded = "padded to a capacity" in runtime
    if "plain all-to-all" in runtime:
        found["dispatch"] = "expert"
    if "CUDA graph" in runtime and "no CUDA graphs" not in runtime and (padded or "plain all-to-all" not in runtime):
        found["moe_wait"] = 0
    if "CUDA graph of the whole iteration" in runtime:
        found |= {"dense_launch": 0, "moe_launch": 0}
    older = row.source.startswith(_SECOND_FLASH) or "FlashAttention 2" in runtime
    if older and row.gpu.startswith(("h100", "h200")):
        own, most = DEVICES[row.gpu], DEVICES["h100-80gb"]
        found["attention_tflops"] = own.tflops * _OF_SECOND_FLASH * own.attention / most.attention
    return found


def config_of(row: Row, configs: Path = CONFIGS) -> ModelConfig:
    """The model of a row; AutoModel's balanced gate gives every token consecutive experts."""
    config = _config(configs / f"{row.model}.json")
    if row.source.startswith(_FSDP):
        config = replace(config, fsdp=True)
    if "experts are consecutive" not in row.runtime:
        return config
    experts = config.model["experts"]
    number, least = experts["number"], experts["per_token"]  # whole groups, of at least a token's experts
    groups = {"groups": next(one for one in range(number // least, 0, -1) if number % one == 0), "groups_per_token": 1}
    return replace(config, model={**config.model, "experts": experts | groups})


@cache
def _config(path: Path) -> ModelConfig:
    return read_config(str(path))
