"""The switches of plan files: what each writes into a document of two devices, two micro-batches and a few layers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from benchmarks.matrix.switch import Document, Draft, Switch

HALF = Fraction(1, 2)


def base(draft: Draft) -> None:
    """Three layers on two devices, one stage each."""
    random = draft.random
    layers: list[Document] = [
        {
            "name": name,
            "forward": random.randint(1, 4),
            "backward": random.randint(1, 5),
            "memory": random.randint(0, 2),
            "activation": random.randint(1, 2),
        }
        for name in ("embedding", "block", "head")
    ]
    draft.document |= {"devices": 2, "microbatches": 2, "layers": layers, "placement": "linear", "chunks": 1}


def _layers(draft: Draft) -> list[Document]:
    found: list[Document] = draft.document["layers"]
    return found


def _of_each(key: str, low: int, high: int) -> Any:
    def write(draft: Draft) -> None:
        for layer in _layers(draft):
            layer[key] = draft.random.randint(low, high)

    return write


def _overlapped(draft: Draft) -> None:
    """A block of a layer's passes takes at least as long as the longer one."""
    for layer in _layers(draft):
        whole = layer.get("fused", layer["backward"] + layer.get("weight", 0))
        layer["overlapped"] = draft.random.randint(max(layer["forward"], whole), layer["forward"] + whole)


def _freed(draft: Draft) -> None:
    for layer in _layers(draft):
        layer["freed_by_backward"] = draft.random.randint(0, layer["activation"])


def _count(draft: Draft) -> None:
    _layers(draft)[1]["count"] = 2


def _with_previous(draft: Draft) -> None:
    _layers(draft)[-1]["with_previous"] = True


def _recompute(draft: Draft) -> None:
    draft.section("memory").setdefault("capacity", 7)
    for layer in _layers(draft):
        layer["recompute"] = [
            {"name": "full", "time": draft.random.randint(1, 3), "keeps": draft.random.choice((0, HALF))}
        ]


def _decide(draft: Draft) -> None:
    draft.section("decide")["recompute"] = draft.random.choice(("never", "always"))


def _rule(draft: Draft) -> None:
    draft.section("decide")["recompute_layers"] = draft.random.choice(("first", "same", "all"))


def _attention(draft: Draft) -> None:
    for layer in _layers(draft):
        layer |= {"attention": HALF, "attention_backward": Fraction(1, 4)}


def _kept(draft: Draft) -> None:
    for layer in _layers(draft):
        layer["kept_for_later"] = HALF
        layer["freed_by_backward"] = min(layer.get("freed_by_backward", 0), layer["activation"] - 1)


def _set(key: str, *values: Any) -> Any:
    def write(draft: Draft) -> None:
        draft.document[key] = draft.random.choice(values)

    return write


def _placed(name: str) -> Any:
    def write(draft: Draft) -> None:
        draft.document |= {"placement": name, "chunks": 2}
        _layers(draft)[1]["count"] = 2

    return write


def _several(draft: Draft) -> None:
    draft.document |= {"placement": draft.random.choice(("free", ["linear", "v-shape"])), "chunks": [1, 2]}
    _layers(draft)[1]["count"] = 2


def _partition(draft: Draft) -> None:
    count = sum(layer.get("count", 1) for layer in _layers(draft))
    stages = 2 * (draft.document["chunks"] if isinstance(draft.document["chunks"], int) else 1)
    draft.document["partition"] = [count - stages + 1] + [1] * (stages - 1)


def _capacity(draft: Draft) -> None:
    draft.section("memory")["capacity"] = draft.random.randint(5, 9)


def _capacities(draft: Draft) -> None:
    draft.section("memory")["capacity"] = draft.times(5, 9, 2)


def _cluster(draft: Draft) -> None:
    del draft.document["devices"]
    classes: list[Document] = [{"devices": 1, "speed": speed} for speed in draft.random.choice(((1, HALF), (2, 1)))]
    if "memory" in draft.document:
        draft.document["memory"].pop("capacity")
        for one in classes:
            one["memory"] = draft.random.randint(6, 10)
    draft.document["cluster"] = classes


def _cluster_open(draft: Draft) -> None:
    draft.document["cluster"][-1]["devices"] = draft.random.choice(("0..1", "1..2"))


def _cluster_free(draft: Draft) -> None:
    draft.section("decide")["cluster"] = "free"


def _overhead(draft: Draft) -> None:
    draft.document["stage_overhead"] = {"forward": 1, "backward": 1}


def _batch(draft: Draft) -> None:
    """The layers' costs become those of a batch."""
    draft.document["batch"] = {"size": 6 * draft.document["microbatches"]}
    if "stage_overhead" not in draft.document:
        draft.document["batch"]["overhead"] = {"forward": 1, "backward": 2, "transfer": 1}


def _links(draft: Draft) -> None:
    draft.document["transfer"] = [[0, 1], [2, 0]]


def _sending(draft: Draft) -> None:
    draft.document["transfer"] = {"time": draft.document["transfer"], "on": "comm"}


def _both(draft: Draft) -> None:
    draft.document["transfer"] |= {"both": True, "on": draft.random.choice(("comm", "compute"))}


def _collective(key: str, *more: str) -> Any:
    def write(draft: Draft) -> None:
        draft.document["objective"] = "iteration"
        draft.section("parameters")[key] = {}
        for own in (key, *more):
            _of_each(own, 0, 2)(draft)

    return write


def _norm(draft: Draft) -> None:
    draft.section("parameters")["norm"] = {"time": draft.random.randint(0, 3), "on": draft.random.choice(("dp", "n"))}


def _buckets(draft: Draft) -> None:
    draft.section("parameters", "reduce")["buckets"] = 2


def _each_microbatch(draft: Draft) -> None:
    draft.section("parameters", "reduce")["every"] = "microbatch"


def _added(draft: Draft) -> None:
    draft.section("parameters", "reduce")["time"] = 1


def _keep(draft: Draft) -> None:
    draft.section("parameters", "gather")["keep"] = draft.random.choice(("always", "never", "never", {"window": 1}))


def _frozen(draft: Draft) -> None:
    """Layers before the first that trains, or others, or all of them."""
    layers = _layers(draft)
    chosen = draft.random.choice((layers[:1], layers[:2], layers[:2], layers[1:2], layers[::2], layers))
    for layer in chosen:
        layer["frozen"] = True


def _frozen_encoder(draft: Draft) -> None:
    draft.section("encoder")["frozen"] = True


def _encoder(draft: Draft) -> None:
    where = draft.random.choice(("first-stage", "own-device", "in-the-bubbles", "replicated"))
    own: Document = {"placement": where, "count": 2, "forward": 1, "backward": 2, "activation": 1}
    if "weight" in _layers(draft)[0]:
        own["weight"] = 1
    draft.document["encoder"] = own


def _model(draft: Draft) -> None:
    """A transformer's shape in place of layers, small enough that its figures are too."""
    draft.document.pop("layers")
    draft.document |= {
        "model": {"layers": 3, "hidden": 64, "vocabulary": 512, "ffn": 128, "sequence": 128, "attention": {"heads": 4}},
        "hardware": {"sustained_tflops": 1, "memory": 1, "pipeline_bandwidth": 10},
    }


def _lora(draft: Draft) -> None:
    modules = draft.random.choice((None, ["linear_qkv"], ["linear_proj", "linear_fc2"]))
    draft.section("model")["lora"] = {"rank": 4} | ({"modules": modules} if modules else {})


def _precision(draft: Draft) -> None:
    draft.section("model")["dtype"] = "fp8"
    parts = draft.random.choice(({}, {"attention": "bf16"}, {"mlp": "bf16", "head": "fp8"}))
    draft.section("model")["precision"] = parts | {"last_layers": draft.random.randint(0, 2)}


def _labels(draft: Draft) -> None:
    draft.document |= {"name": 'a "plan" <b>', "time_unit": "ms"}
    draft.section("memory").setdefault("capacity", 20)
    draft.section("memory")["unit"] = "GiB"


def _free_memory(draft: Draft) -> None:
    draft.section("memory").setdefault("capacity", draft.random.randint(6, 12))
    draft.document["objective"] = draft.random.choice(("free_memory", "free_memory_per_layer"))
    if draft.random.random() < 0.5:
        draft.document["then"] = draft.random.choice(("makespan", "period"))


def _nothing(_: Draft) -> None:
    """Apply a notation of numbers."""


SWITCHES = (
    Switch("weight", ("layers.weight",), _of_each("weight", 0, 2)),
    Switch("fused", ("layers.fused",), _of_each("fused", 2, 6), "", ("weight",)),
    Switch("overlapped", ("layers.overlapped",), _overlapped),
    Switch("count", ("layers.count",), _count),
    Switch("freed by backward", ("layers.freed_by_backward",), _freed),
    Switch("with previous", ("layers.with_previous",), _with_previous, "", ("count",)),
    Switch("capacity", ("memory.capacity",), _capacity, "capacity"),
    Switch("capacities", ("memory.capacity",), _capacities, "capacity"),
    Switch("recompute", ("layers.recompute",), _recompute),
    Switch("decide recompute", ("decide.recompute",), _decide, "", ("recompute",)),
    Switch("recompute rule", ("decide.recompute_layers",), _rule, "", ("recompute",)),
    Switch("interleaved", ("placement", "chunks"), _placed("interleaved"), "placement"),
    Switch("wave", ("placement", "chunks"), _placed("wave"), "placement"),
    Switch("bidirectional", ("placement",), _placed("bidirectional"), "placement"),
    Switch("several placements", ("placement", "chunks"), _several, "placement"),
    Switch("partition", ("partition",), _partition, "partition"),
    Switch("even", ("partition",), _set("partition", "even"), "partition"),
    Switch("one schedule", ("schedule",), _set("schedule", "1f1b", ["1f1b", "gpipe"])),
    Switch("pieces", ("sequence_chunks",), _set("sequence_chunks", 2, [1, 2], {"count": 2, "lengths": "free"})),
    Switch("attention", ("layers.attention", "layers.attention_backward"), _attention, "", ("pieces",)),
    Switch("kept for later", ("layers.kept_for_later",), _kept, "", ("pieces",)),
    Switch("empty stages", ("empty_stages",), _set("empty_stages", True)),
    Switch("overhead", ("stage_overhead",), _overhead),
    Switch("batch", ("batch",), _batch),
    Switch("transfer", ("transfer",), _set("transfer", 1, HALF), "transfer"),
    Switch("links", ("transfer",), _links, "transfer"),
    Switch("sending stream", ("transfer",), _sending, "", ("transfer",)),
    Switch("both devices", ("transfer",), _both, "", ("sending stream",)),
    Switch("reduce", ("parameters.reduce", "layers.reduce"), _collective("reduce")),
    Switch("reduce of stages", ("parameters.reduce.time",), _added, "", ("reduce",)),
    Switch("buckets", ("parameters.reduce.buckets",), _buckets, "buckets", ("reduce",)),
    Switch("each micro-batch", ("parameters.reduce.every",), _each_microbatch, "buckets", ("reduce",)),
    Switch("step", ("parameters.step", "layers.step"), _collective("step")),
    Switch("norm", ("parameters.norm",), _norm, "", ("step",)),
    Switch("gather", ("parameters.gather", "layers.gather", "layers.gathered"), _collective("gather", "gathered")),
    Switch("keep", ("parameters.gather.keep",), _keep, "", ("gather",)),
    Switch("frozen", ("layers.frozen",), _frozen),
    Switch("overlap next", ("overlap_next",), _set("overlap_next", True), "", ("step",)),
    Switch("span", ("objective",), _set("objective", "span"), "objective"),
    Switch("period", ("objective",), _set("objective", "period"), "objective"),
    Switch("free memory", ("objective", "then"), _free_memory, "objective"),
    Switch("cluster", ("cluster",), _cluster),
    Switch("open cluster", ("cluster.devices",), _cluster_open, "", ("cluster",)),
    Switch("free cluster", ("decide.cluster",), _cluster_free, "", ("cluster",)),
    Switch("encoder", ("encoder",), _encoder),
    Switch("frozen encoder", ("encoder.frozen",), _frozen_encoder, "", ("encoder",)),
    Switch("vocabulary", ("vocabulary",), _set("vocabulary", "shared", "free")),
    Switch("labels", ("name", "time_unit", "memory.unit"), _labels),
    Switch("model", ("model", "hardware"), _model),
    Switch("lora", ("model.lora",), _lora, "", ("model",)),
    Switch("precision", ("model.precision",), _precision, "", ("model",)),
    Switch("decimals", (), _nothing, "numbers"),
    Switch("fractions", (), _nothing, "numbers"),
    Switch("units", (), _nothing, "numbers"),
    Switch("17 digits", (), _nothing, "numbers"),
)
BY_NAME = {one.name: one for one in SWITCHES}
