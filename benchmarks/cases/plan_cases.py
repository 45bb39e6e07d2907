"""Plan problems from published results, as documents of plan files."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby, product
from typing import Any, NamedTuple

Document = dict[str, Any]


class _Conductor(NamedTuple):
    """A unit test of mindspore-ai/hyper-parallel's fast-tuner (Apache-2.0); times in forwards of a layer with experts.

    Pairs are of a layer with experts and of a dense one; memory in MB, of the first, a middle and the last device.
    """

    devices: int
    chunks: int
    microbatches: int
    dense: str
    backward: str  # over forward
    again: str  # recomputation of a layer with experts
    head: str
    activation: tuple[int, int]
    kept: tuple[int, int]
    parameters: tuple[int, int]
    limits: tuple[int, int, int]


_DEEPSEEK = {
    "deepseek-v3 16/1/64": _Conductor(
        16, 1, 64, "0.397", "1.839", "1", "1.5", (765, 479), (30, 30), (10691, 866), (51913, 52914, 46621)
    ),
    "deepseek-v3 6/1/120": _Conductor(
        6, 1, 120, "0.71", "1.627", "0.246", "1.493", (673, 494), (158, 46), (2644, 1010), (53101, 55065, 48876)
    ),
    "deepseek-v3 4/2/120": _Conductor(
        4, 2, 120, "0.71", "1.627", "0.71", "1.5", (673, 493), (142, 30), (2111, 869), (48592, 52919, 47310)
    ),
    "deepseek-v3 8/4/240": _Conductor(
        8, 4, 240, "0.71", "1.627", "0.246", "1.493", (1346, 988), (316, 92), (3670, 1109), (49858, 52632, 42894)
    ),
}

# NVIDIA Nemotron Nano 9B v2 as SimPipe and OctoPipe measured it, in ms.
_NEMOTRON = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
_NEMOTRON_LAYERS = {
    "M": {"name": "mamba", "forward": 2.6768, "backward": 4.2984, "weight": 1.7599},
    "-": {"name": "mlp", "forward": 1.8477, "backward": 1.909, "weight": 1.6866},
    "*": {"name": "attention", "forward": 1.9254, "backward": 2.4534, "weight": 0.6547},
}
_LLAMA = {
    "llama3-8b": (32, (1.7372, 1.9665, 1.0829), (3.5448, 2.1146, 0), (10.3899, 7.4635, 0.0395)),
    "llama3-70b": (80, (5.5991, 6.8438, 4.366), (4.3716, 2.0871, 0), (11.4474, 18.6069, 7.4338)),
}


class Case(NamedTuple):
    """A plan problem, the best published value and what it was found by; None where nothing is published."""

    name: str
    document: Document
    published: float | None
    by: str
    seconds: float


def cases() -> Iterator[Case]:
    """Every case, as it is planned."""
    one_f = deepseek("deepseek-v3 16/1/64")
    yield Case("deepseek-v3 16/1/64, 1f1b", one_f | {"schedule": "1f1b"}, 1132.66, "pipeline_conductor", 30)
    yield Case("deepseek-v3 16/1/64, any order", one_f, 1132.66, "pipeline_conductor, 1f1b", 60)
    # Their evaluation of many micro-batches extrapolates from five groups of them; ours is exact.
    conductor = "pipeline_conductor, its own evaluation"
    second = deepseek("deepseek-v3 6/1/120") | {"schedule": "1f1b"}
    yield Case("deepseek-v3 6/1/120, 1f1b", second, 3603.39, conductor, 30)
    for name, value in (("deepseek-v3 4/2/120", 5868.49), ("deepseek-v3 8/4/240", 5562.66)):
        several = deepseek(name) | {"schedule": "interleaved-1f1b"}
        yield Case(f"{name}, interleaved-1f1b", several, value, conductor, 90)
    apart = [*several["layers"][:-1], several["layers"][-1] | {"with_previous": False}]
    yield Case(f"{name}, interleaved-1f1b, head apart", several | {"layers": apart}, value, conductor, 90)
    for measured, found in ((False, 34), (True, 306)):
        yield Case(f"SlackPipe {found}", slackpipe(measured), found, "SlackPipe", 10)
        free = slackpipe(measured) | {"placement": "free", "chunks": [1, 2]}
        yield Case(f"SlackPipe {found}, any placement", free, found, "SlackPipe", 20)
    yield Case("nemotron-9b, 4 devices", nemotron(), 898.70, "OctoPipe", 60)
    for name, devices, times in product(_LLAMA, (4, 8, 16), (2, 4)):
        document = llama(name, devices, times * devices)
        yield Case(f"{name}, {devices} devices, {times * devices} micro-batches", document, None, "", 10)


def deepseek(name: str) -> Document:
    """One of the unit tests of pipeline_conductor: DeepSeek-V3's 3 dense layers and 59 with experts."""
    model = _DEEPSEEK[name]
    ratio, dense, head = Fraction(model.backward), Fraction(model.dense), Fraction(model.head)

    def layer(name: str, count: int, forward: Fraction, of: int, again: Fraction) -> Document:
        mode = {"name": "full", "time": again, "keeps": Fraction(model.kept[of], model.activation[of])}
        costs = {"memory": model.parameters[of], "activation": model.activation[of], "recompute": [mode]}
        return {"name": name, "count": count, "forward": forward, "backward": ratio * forward, **costs}

    layers = [layer("dense", 3, dense, 1, dense), layer("moe", 59, Fraction(1), 0, Fraction(model.again))]
    layers.append({"name": "head", "forward": head, "backward": ratio * head, "with_previous": True})
    first, middle, last = model.limits
    return {
        "name": name,
        "devices": model.devices,
        "microbatches": model.microbatches,
        "layers": layers,
        "memory": {"unit": "MB", "capacity": [first, *[middle] * (model.devices - 2), last]},
        "placement": "interleaved" if model.chunks > 1 else "linear",
        "chunks": model.chunks,
    }


def slackpipe(measured: bool) -> Document:
    """Four micro-batches, four stages on two devices in turn, eight layers; alike, or as measured."""
    document: Document = {"devices": 2, "microbatches": 4, "placement": "interleaved", "chunks": 2}
    if not measured:
        return document | {"layers": [{"name": "layer", "count": 8, "forward": 1, "backward": 1}]}
    # Every stage adds 3 and 6; the first one less of each, the last one more.
    forward, backward = [0, 9, 2, 3, 4, 5, 6, 8], [1, 18, 4, 6, 8, 10, 12, 15]
    times = enumerate(zip(forward, backward, strict=True))
    layers = [{"name": f"layer{n}", "forward": f, "backward": b} for n, (f, b) in times]
    return document | {"layers": layers, "stage_overhead": {"forward": 3, "backward": 6}}


def nemotron() -> Document:
    """56 layers of three kinds, embedding and loss; no memory limit, no transfer time."""
    layers: list[Document] = [{"name": "embedding", "forward": 0.7589, "backward": 2.8654, "weight": 0}]
    for sort, run in groupby(_NEMOTRON):
        layers.append(_NEMOTRON_LAYERS[sort] | {"count": len(list(run))})
    layers.append({"name": "loss", "forward": 14.2155, "backward": 15.7056, "weight": 0.0595})
    return {
        "name": "nemotron-9b",
        "devices": 4,
        "microbatches": 8,
        "time_unit": "ms",
        "layers": layers,
        "chunks": [1, 2, 4],
    }


def llama(name: str, devices: int, microbatches: int) -> Document:
    """A profile of SimPipe's, without transfer times and memory limits."""
    count, layer, embedding, loss = _LLAMA[name]
    keys = ("forward", "backward", "weight")
    layers = [
        {"name": "embedding", **dict(zip(keys, embedding, strict=True))},
        {"name": "layer", "count": count, **dict(zip(keys, layer, strict=True))},
        {"name": "loss", **dict(zip(keys, loss, strict=True))},
    ]
    return {"name": name, "devices": devices, "microbatches": microbatches, "time_unit": "ms", "layers": layers}
