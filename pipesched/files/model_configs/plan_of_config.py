"""Text of a plan file from a model configuration: sections `model` and `hardware`, each assumption in a comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_table import Device
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.layers.derived.data_links import ByNodes, members_in_node
from pipesched.layers.derived.precision import FORMATS
from pipesched.layers.derived.shape import Parallel

# What a configuration does not say of training. RESERVED: GiB of the CUDA context, of NCCL's buffers and of blocks that
# the allocator cannot use.
DEFAULT_SEQUENCE, RESERVED = 4096, 3
_CHUNKS = (1, 2, 4)
SIZES = ("tensor", "context", "expert", "data")


@dataclass(frozen=True)
class Wanted:
    """Training settings that the user gives; where one is None the configuration decides, or else a default.

    `devices` are pipeline ranks; `microbatches` is the number for each data-parallel replica, each of `microbatch_size`
    sequences of `sequence` tokens. `hardware` is the name of the `device`. `sizes` has sizes of parallelism inside a
    stage, under `tensor`, `context`, `expert` and `data`. `mfu` is the share, from 0 to 1, of the peak rate that
    products reach, in place of the device's fitted share. `training` has further keys of the section `model` (dtype,
    flash, gradient_bytes, ...) and of its `parallel` (sharding, sequence); `rates` has further keys of the section
    `hardware`.
    """

    devices: int
    microbatches: int
    hardware: str
    device: Device
    sequence: int | None = None
    microbatch_size: int | None = None
    sizes: Mapping[str, int | None] | None = None
    mfu: Fraction | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    rates: Mapping[str, Any] = field(default_factory=dict)


class _Entry(NamedTuple):
    """A line `key: value` of the plan file, in YAML, with a comment on the value's unit or on what it assumes.

    Lists and mappings are written in flow style, text without quotes. `line` has no indent.
    """

    key: str
    value: Any
    comment: str = ""

    @property
    def line(self) -> str:
        """The entry as a line of YAML, with its comment."""
        text = f"{self.key}: {_value(self.value)}"
        return f"{text:<27} # {self.comment}" if self.comment else text


def plan_text(config: ModelConfig, wanted: Wanted, source: str) -> str:
    """Return the text of the plan file for a model configuration and settings; `source` names the configuration.

    `BadInput` for a number format that the device has no products of.
    """
    head, model, hardware = _sections(config, wanted)
    lines = [
        f"# {config.name}, from {source}. What that file does not say is assumed: look at each line that says so.",
        *(f"# {note}" for note in config.notes),
        *(entry.line for entry in head),
        "model:",
        *(f"  {entry.line}" for entry in model),
        "hardware:",
        f"  # {wanted.device.source}",
        *(f"  {entry.line}" for entry in hardware),
    ]
    return "\n".join(lines) + "\n"


def plan_document(config: ModelConfig, wanted: Wanted) -> dict[str, Any]:
    """Return the plan document that `read_yaml` would read from `plan_text`, without going through text (faster).

    `BadInput` for a number format that the device has no products of.
    """
    head, model, hardware = ({entry.key: _read(entry.value) for entry in own} for own in _sections(config, wanted))
    return head | {"model": model, "hardware": hardware}


def _sections(config: ModelConfig, wanted: Wanted) -> tuple[list[_Entry], list[_Entry], list[_Entry]]:
    """Return the entries of the plan file as three lists: at its top level, in `model`, and in `hardware`.

    `BadInput` for a number format that the device has no products of.
    """
    head = [
        _Entry("name", config.name),
        _Entry("devices", wanted.devices, "pipeline ranks; each is as many devices as tensor * context * data below"),
        _Entry("microbatches", wanted.microbatches, "of one step, on each data-parallel rank"),
        _Entry("chunks", _chunks(config, wanted.devices), "stages on a rank to choose from (Megatron: virtual stages)"),
    ]
    of_config = {key: value for key, value in config.model.items() if key not in _FORMATS}
    model = [*(_Entry(key, value) for key, value in of_config.items()), *_training(config, wanted)]
    return head, model, [*_hardware(config, wanted)]


def sizes_of(config: ModelConfig, wanted: Wanted) -> dict[str, int]:
    """Return the sizes of parallelism inside a stage, by name: `tensor`, `context`, `expert` and `data`.

    Each is the size that the user wants, else that of the configuration, else 1. If no data size is wanted, it is at
    least so large that the devices of a stage (tensor x context x data) are as many as the expert size.
    """
    given = wanted.sizes or {}
    found = {key: given.get(key) or config.settings.get(key) or 1 for key in SIZES}
    if not given.get("data"):
        found["data"] = max(found["data"], -(-found["expert"] // (found["tensor"] * found["context"])))
    return found


def sequence_of(config: ModelConfig, wanted: Wanted) -> int:
    """Return the tokens of a sequence: as wanted, else as in the configuration, else the model's longest.

    The last is at most 4096, and 4096 if the configuration does not give it.
    """
    known: int | None = wanted.sequence or config.settings.get("sequence")
    return known or min(config.longest or DEFAULT_SEQUENCE, DEFAULT_SEQUENCE)


def _chunks(config: ModelConfig, devices: int) -> list[int]:
    """Return the numbers of chunks, of 1, 2 and 4, with which every stage of a pipeline of `devices` gets a layer.

    1 alone if none does. Embedding and head count as a layer each.
    """
    layers = config.model["layers"] + config.model.get("mtp_layers", 0) + 2
    return [each for each in _CHUNKS if each * devices <= layers] or [1]


def _training(config: ModelConfig, wanted: Wanted) -> Iterator[_Entry]:
    settings = config.settings
    known = wanted.sequence or settings.get("sequence")
    comment = "tokens" if known else "assumed: tokens of a sequence (--sequence)"
    yield _Entry("sequence", sequence_of(config, wanted), comment)
    longest = config.longest
    if longest is not None and longest < sequence_of(config, wanted):
        yield _Entry("max_position_embeddings", longest, "of the configuration, which settings raise to the sequence")
    size = wanted.microbatch_size or settings.get("microbatch_size")
    yield _Entry("microbatch_size", size or 1, "sequences" if size else "assumed: sequences (--microbatch-size)")
    own = {key: value for key, value in wanted.training.items() if key not in (*_OF_PARALLEL, *_FORMATS)}
    for key, value in formats_of(config, wanted).items():
        yield _Entry(key, value, "given" if key in wanted.training else "of the configuration")
    if "dtype" not in formats_of(config, wanted):
        yield _Entry("dtype", "bf16", "assumed: 16-bit passes, gradients and Adam's state in 32 bits")
    if "flash" not in own:
        yield _Entry("flash", True, "assumed: attention scores are never stored")
    if config.fsdp and "early_stop" not in own:
        yield _Entry("early_stop", True, "PyTorch's checkpoints do not run a layer's last product again")
    if config.fsdp and wanted.training.get("sharding") in _REDUCED_EARLY and "reduction_bytes" not in own:
        reduced, usual = config.reduction_bytes, "torchtitan reduces gradients in 32 bits (mixed_precision_reduce)"
        yield _Entry("reduction_bytes", reduced or 4, "of the configuration" if reduced else usual)
    for key, value in own.items():
        yield _Entry(key, value, "given")
    sizes = sizes_of(config, wanted)
    known = any((wanted.sizes or {}).get(key) or settings.get(key) for key in SIZES)
    flags = "" if known else "assumed: "
    parallel = sizes | {key: value for key, value in wanted.training.items() if key in _OF_PARALLEL}
    yield _Entry("parallel", parallel, f"{flags}a stage's devices (--tensor, --context, ...)")


_OF_PARALLEL = ("sharding", "sequence")
_REDUCED_EARLY = ("gradients", "parameters")  # sharding with which each micro-batch reduces its gradients
_FORMATS = ("dtype", "precision", "weight_bytes")
_ENDS = ("first_layers", "last_layers")


def formats_of(config: ModelConfig, wanted: Wanted) -> dict[str, Any]:
    """Return the keys of number formats of the section `model`: given ones, else the configuration's.

    With another `dtype` than the configuration's the others do not hold. A given `precision` replaces the formats of
    all parts; layers at both ends stay as in the configuration unless it has their number.
    """
    given = {key: wanted.training[key] for key in _FORMATS if key in wanted.training}
    own = {key: config.model[key] for key in _FORMATS if key in config.model}
    if given.get("dtype", own.get("dtype")) != own.get("dtype"):
        return given
    parts, kept = given.get("precision"), own.get("precision", {})
    if isinstance(parts, Mapping):
        given["precision"] = {key: kept[key] for key in _ENDS if key in kept} | dict(parts)
    return own | given


def _hardware(config: ModelConfig, wanted: Wanted) -> Iterator[_Entry]:
    """Yield the entries of the section `hardware`; the user's `rates` replace numbers of the device."""
    yield _Entry("name", wanted.hardware, "of the published measurements that say how large an error to expect")
    given = dict(wanted.rates)
    for key, (value, comment) in hardware_keys(config, wanted).items():
        yield _Entry(key, given.pop(key), "given") if key in given else _Entry(key, value, comment)
    for key, value in given.items():
        yield _Entry(key, value, "given")


def hardware_keys(config: ModelConfig, wanted: Wanted) -> dict[str, tuple[object, str]]:
    """Return the keys of the section `hardware`, each with its value and a comment on what it assumes.

    Values are in the units of these keys, numbers or text; the user's `rates` are not among them. `BadInput` for a
    precision that the device has no products of.
    """
    device, sizes = wanted.device, sizes_of(config, wanted)
    products = device.products if wanted.mfu is None else float(wanted.mfu)
    how = "given: " if wanted.mfu is not None else ""
    lines: dict[str, tuple[object, str]] = {
        "sustained_tflops": (
            _short(device.tflops * products), f"{how}products: {100 * products:.3g} % of {device.tflops:g} (--mfu)"
        ),
    }  # fmt: skip
    share = device.narrow_products if wanted.mfu is None else products
    for key, peak in _narrow_rates(config, wanted).items():
        lines[key] = (_short(peak * share), f"{how}products of fewer bits: {100 * share:.3g} % of {peak:g}")
    lines["attention_tflops"] = (_short(device.tflops * device.attention), f"{100 * device.attention:.3g} % of it")
    lines |= {
        "multiprocessors": (device.multiprocessors, "run tiles of products in waves"),
        "memory_bandwidth": (_short(device.memory_bandwidth * device.memory_share),
                             f"GB/s: {100 * device.memory_share:.3g} % of {device.memory_bandwidth:g}"),
        "dense_launch": (device.dense_launch, "ms, the least of a dense layer's forward"),
        "memory": (device.memory, "GiB"),
        "reserved": (RESERVED, "assumed: GiB for communication and the driver"),
    }  # fmt: skip
    if "experts" in config.model:
        lines["moe_launch"] = device.moe_launch, "ms, the least of a forward of a layer with experts"
        lines["moe_wait"] = device.moe_wait, "ms that each of these waits for its host; 0 with CUDA graphs"
    return lines | _links(config, wanted, sizes)


def _narrow_rates(config: ModelConfig, wanted: Wanted) -> dict[str, float]:
    """Return the peak rates, in TFLOP/s, of products in fewer than 16 bits that a plan needs, by key of `hardware`.

    `BadInput` for a format that the device has no products of.
    """
    device, found = wanted.device, dict[str, float]()
    formats = formats_of(config, wanted)
    dtype, parts = str(formats.get("dtype")), formats.get("precision")
    named = {"dtype": dtype} | {
        f"precision.{part}": str(name)
        for part, name in (parts.items() if isinstance(parts, Mapping) else ())
        if str(name) in FORMATS
    }
    peaks = {8: device.tflops_8bit, 4: device.tflops_4bit}
    for place, name in named.items():
        bits = FORMATS[name].bits if name in FORMATS else 16
        if bits not in peaks:
            continue
        peak = peaks[bits]
        if not peak:
            known = ", ".join(one for one, own in FORMATS.items() if peaks.get(own.bits, 1))
            raise BadInput(f"{place}: found {name}, of which {wanted.hardware} has no products; allowed: {known}")
        if place == "dtype":
            found["product_tflops"] = peak
        elif dtype not in FORMATS or FORMATS[dtype].bits != bits:
            found[f"product_tflops_{bits}bit"] = peak
    return found


def _links(config: ModelConfig, wanted: Wanted, sizes: Mapping[str, int]) -> dict[str, tuple[object, str]]:
    """Return, by key of `hardware`, the bandwidth of each kind of exchange, and how exchanges are sent and hidden.

    An entry is (value, comment): bandwidths are text in GB/s, others a number of devices, a word or a share, and the
    comment says what it assumes. Ranks of one stage are numbered consecutively; an exchange is inside a node if its
    group fits into one. A share that is hidden runs at the same time as computation. `sizes` are those of parallelism
    inside a stage.
    """
    device = wanted.device
    tensor, context, data = sizes["tensor"], sizes["context"], sizes["data"]
    stage = tensor * context * data
    inside = stage * wanted.devices <= device.node
    found: dict[str, tuple[object, str]] = {
        "pipeline_bandwidth": (
            _short((device.in_node if inside else device.between_nodes) * device.data_share),
            f"GB/s, {'all stages inside a node' if inside else 'stages on different nodes'}",
        )
    }
    if tensor > 1:
        members = min(tensor, device.node)
        found["tensor_bandwidth"] = _link(device, tensor, members, device.tensor_share, "a tensor group")
    if sizes["expert"] > 1:
        rate, comment = _link(device, sizes["expert"], 1, device.expert_share, "experts")
        found |= {
            "expert_bandwidth": (rate, comment),
            "expert_node_bandwidth": (_short(device.in_node * device.expert_share), "GB/s, experts inside a node"),
            "node": (device.node, "devices"),
            "dispatch": ("node", "assumed: tokens go once to a node (DeepEP, HybridEP); expert: all-to-all"),
        }
    if context > 1:
        found["context_bandwidth"] = _link(device, tensor * context, 1, device.data_share, "keys and values")
    if context * data > 1:
        found |= _data_link(device, Parallel(tensor, context, sizes["expert"], data))
        what = "assumed: the last backward hides gradients, the next forward weights (gather_hidden_share)"
        found["data_hidden_share"] = "100%", what
        found |= config.hidden
    if tensor > 1 or sizes["expert"] > 1:
        found["hidden_share"] = "0%", "assumed: no exchange of tensors or experts runs behind computation"
    return found


def _data_link(device: Device, parallel: Parallel) -> dict[str, tuple[object, str]]:
    """Return the bandwidth of gradients by key of `hardware`: as given for the device, or from its links.

    An entry is (value, comment): a rate in GB/s as text, or a table of such rates by number of nodes, with which the
    devices of a node are an entry too. A ring over several nodes uses the links of all its members in one.
    """
    given = device.data_bandwidth
    if given is None:
        members = members_in_node(parallel, device.node)
        return {"data_bandwidth": _link(device, parallel.devices, members, device.data_share, "exchange of gradients")}
    if not isinstance(given, ByNodes):
        return {"data_bandwidth": (_short(given), "given: GB/s, exchange of gradients")}
    table = {nodes: f"{rate:.6g}" for nodes, rate in given.measured}
    return {
        "node": (device.node, "devices"),
        "data_bandwidth": (table, "given: GB/s, all-reduce by nodes"),
    }


def _link(device: Device, group: int, members: int, share: float, what: str) -> tuple[object, str]:
    """Return the bandwidth in GB/s, as text, of a group of `group` devices, with a comment on what it assumes.

    Inside a node it is that of the device there. Of a larger group it is the bandwidth of a device to other nodes times
    `members`, the number of its devices in a node, all of whose links are used; at most that inside a node. `share` is
    the part of either that is reached, `what` the subject of the comment.
    """
    if group <= device.node:
        return _short(device.in_node * share), f"GB/s, {what} inside a node: {100 * share:.3g} % of {device.in_node:g}"
    rate = min(device.in_node, device.between_nodes * members)
    return _short(rate * share), f"GB/s, {what} over several nodes: {100 * share:.3g} % of {rate:g}"


def _short(number: float) -> str:
    return f"{number:.4g}" if number < 10**4 else f"{number:.0f}"


def _read(value: Any) -> Any:
    """Return a value as YAML would read it from the plan file's text."""
    if isinstance(value, list | tuple):
        return [_read(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _read(one) for key, one in value.items()}
    return _scalar(_value(value))


@cache
def _scalar(text: str) -> object:
    return read_yaml(text, "a value")


# With which text of YAML cannot begin, as patterns of layers may.
_SIGNS = ("*", "-")


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, str) and value[:1] in _SIGNS:
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
