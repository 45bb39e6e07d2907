"""A plan file from a model configuration: the sections `model` and `hardware`, with every assumption in a comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipesched.files.model_configs.hardware_table import Device
from pipesched.files.model_configs.model_config import ModelConfig

# What a configuration does not say of training.
DEFAULT_SEQUENCE, DEFAULT_MFU, RESERVED = 4096, Fraction(2, 5), 5
_CHUNKS = (1, 2, 4)
NODE = 8  # devices of a node
SIZES = ("tensor", "context", "expert", "data")


@dataclass(frozen=True)
class Wanted:
    """What the user says of training; None where the configuration, or else a default, decides."""

    devices: int
    microbatches: int
    hardware: str
    device: Device
    sequence: int | None = None
    microbatch_size: int | None = None
    sizes: Mapping[str, int | None] | None = None
    mfu: Fraction | None = None


def plan_text(config: ModelConfig, wanted: Wanted, source: str) -> str:
    """The text of the file."""
    lines = [
        f"# {config.name}, from {source}. What that file does not say is assumed: look at each line that says so.",
        *(f"# {note}" for note in config.notes),
        f"name: {config.name}",
        _line("devices", wanted.devices, "pipeline ranks; each is as many devices as tensor * context * data below"),
        _line("microbatches", wanted.microbatches, "of one step, on each data-parallel rank"),
        _line("chunks", _chunks(config, wanted.devices), "stages on a rank to choose from (Megatron: virtual stages)"),
        "model:",
        *(f"  {key}: {_value(value)}" for key, value in config.model.items()),
        *(f"  {line}" for line in _training(config, wanted)),
        "hardware:",
        *(f"  {line}" for line in _hardware(config, wanted)),
    ]
    return "\n".join(lines) + "\n"


def sizes_of(config: ModelConfig, wanted: Wanted) -> dict[str, int]:
    """The sizes of parallelism inside a stage: those that are given, else the configuration's, else 1.

    Data parallelism of its own is not needed for experts: the least that makes room for them is taken.
    """
    given = wanted.sizes or {}
    found = {key: given.get(key) or config.said.get(key) or 1 for key in SIZES}
    if not given.get("data") and found["expert"] > found["tensor"] * found["context"]:
        found["data"] = -(-found["expert"] // (found["tensor"] * found["context"]))
    return found


def sequence_of(config: ModelConfig, wanted: Wanted) -> int:
    """Tokens of a sequence: what is given, else the configuration's, else the longest up to a default."""
    known: int | None = wanted.sequence or config.said.get("sequence")
    return known or min(config.longest or DEFAULT_SEQUENCE, DEFAULT_SEQUENCE)


def _chunks(config: ModelConfig, devices: int) -> list[int]:
    """So many that every stage has a layer; embedding and head are one each."""
    layers = config.model["layers"] + config.model.get("mtp_layers", 0) + 2
    return [each for each in _CHUNKS if each * devices <= layers] or [1]


def _training(config: ModelConfig, wanted: Wanted) -> Iterator[str]:
    said = config.said
    known = wanted.sequence or said.get("sequence")
    comment = "tokens" if known else "assumed: tokens of a sequence (--sequence)"
    yield _line("sequence", sequence_of(config, wanted), comment)
    longest = config.longest
    if longest is not None and longest < sequence_of(config, wanted):
        yield _line("max_position_embeddings", longest, "of the configuration, which settings raise to the sequence")
    size = wanted.microbatch_size or said.get("microbatch_size")
    yield _line("microbatch_size", size or 1, "sequences" if size else "assumed: sequences (--microbatch-size)")
    yield _line("dtype", "bf16", "assumed: 16-bit passes, gradients and Adam's state in 32 bits")
    yield _line("flash", "true", "assumed: attention scores are never stored")
    sizes = sizes_of(config, wanted)
    known = any((wanted.sizes or {}).get(key) or said.get(key) for key in SIZES)
    flags = "" if known else "assumed: "
    yield _line("parallel", _value(sizes), f"{flags}a stage's devices (--tensor, --context, ...)")


def _hardware(config: ModelConfig, wanted: Wanted) -> Iterator[str]:
    device, sizes = wanted.device, sizes_of(config, wanted)
    mfu = DEFAULT_MFU if wanted.mfu is None else wanted.mfu
    how = "assumed: " if wanted.mfu is None else ""
    yield f"# {wanted.hardware}: {device.source}"
    yield _line(
        "sustained_tflops", round(device.tflops * mfu), f"{how}{float(100 * mfu):g} % of {device.tflops:g} (--mfu)"
    )
    yield _line("memory", device.memory, "GiB")
    yield _line("reserved", RESERVED, "assumed: GiB for working space, communication and the driver")
    yield _line("pipeline_bandwidth", device.between_nodes, "assumed: GB/s, stages on different nodes")
    if sizes["tensor"] > 1:
        yield _line("tensor_bandwidth", *_link(device, sizes["tensor"], "a tensor group"))
    if sizes["expert"] > 1:
        yield _line("expert_bandwidth", *_link(device, sizes["expert"], "experts"))
    if sizes["context"] > 1:
        yield _line("context_bandwidth", *_link(device, sizes["tensor"] * sizes["context"], "keys and values"))
    if sizes["context"] * sizes["data"] > 1:
        inside = sizes["tensor"] * sizes["context"] * sizes["data"]
        yield _line("data_bandwidth", *_link(device, inside, "exchange of gradients"))
    if sizes["tensor"] > 1 or sizes["expert"] > 1:
        yield _line("hidden_share", "0%", "assumed: no exchange runs behind computation")


def _link(device: Device, group: int, what: str) -> tuple[int, str]:
    """GB/s between so many devices that follow each other, and what that assumes."""
    if group <= NODE:
        return device.in_node, f"assumed: GB/s, {what} inside a node"
    return device.between_nodes, f"assumed: GB/s, {what} over several nodes"


def _line(key: str, value: object, comment: str) -> str:
    return f"{f'{key}: {value}':<27} # {comment}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)
