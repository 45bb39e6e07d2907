"""The switches of problem files: what each writes into a document of two or three devices and micro-batches."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from benchmarks.matrix.switch import Document, Draft, Switch

HALF = Fraction(1, 2)


def base(draft: Draft) -> None:
    """Devices, micro-batches and times, without any switch."""
    draft.document |= {"devices": draft.random.choice((2, 2, 3)), "microbatches": draft.random.choice((2, 2, 3))}


def plain_times(draft: Draft) -> None:
    """Forward and backward of every stage."""
    draft.section("times").update(forward=draft.per_stage(1, 4), backward=draft.per_stage(1, 5))


def _placed(name: str, chunks: int | None = None) -> Any:
    def write(draft: Draft) -> None:
        draft.document |= {"placement": name, "devices": 2, "microbatches": 2}
        if chunks:
            draft.document["chunks"] = chunks

    return write


def _own_placement(draft: Draft) -> None:
    draft.document |= {"devices": 2, "placement": draft.random.choice(([0, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 0]))}


def _chains(draft: Draft) -> None:
    where, stages = draft.random.choice(
        (
            ([0, 1, 0, 1], [[0, 1], [2, 3]]),
            ([0, 1, 1, 0], [[0, 1], [2, 3]]),
            ([0, 1, 1], [[0, 1], [2]]),
            ([1, 0, 0], [[2], [1, 0]]),
        )
    )
    counts = draft.random.choice(((1, 1), (1, 2), (2, 1)))
    chains = [{"stages": own, "microbatches": count} for own, count in zip(stages, counts, strict=True)]
    draft.document |= {"devices": 2, "microbatches": sum(counts), "placement": where, "chains": chains}


def _pipelines(draft: Draft) -> None:
    draft.document |= {
        "devices": min(2, draft.document["devices"]),
        "microbatches": draft.random.choice((1, 2)),
        "pipelines": {"count": 2},
    }


def _lost(draft: Draft) -> None:
    draft.section("pipelines")["lost"] = [
        [draft.random.randint(0, 1), draft.random.randrange(draft.document["devices"])]
    ]


def _slow(draft: Draft) -> None:
    lost = [tuple(one) for one in draft.section("pipelines").get("lost", [])]
    left = [(n, d) for n in range(2) for d in range(draft.document["devices"]) if (n, d) not in lost]
    n, d = draft.random.choice(left)
    draft.section("pipelines")["slow"] = {f"{n}.{d}": draft.random.choice((2, Fraction(3, 2)))}


def _pieces(draft: Draft) -> None:
    draft.document |= {"sequence_chunks": 2, "microbatches": 1 if draft.stages > 2 else draft.random.choice((1, 2))}


def _growing(draft: Draft) -> None:
    times = draft.section("times")
    for key in ("forward", "backward"):
        values = draft.times(1, 4, 2)
        if draft.random.random() < HALF:
            times[key] = {"first": values[0], "each_earlier": values[1]}
        else:
            times[key] = [draft.times(1, 4, 2) for _ in range(draft.stages)]


def _kept(draft: Draft) -> None:
    draft.section("memory").update(
        kept_for_later=draft.random.choice((1, {"first": 1, "each_earlier": 1})), capacity=_capacity(draft, 4)
    )


def _weight(draft: Draft) -> None:
    draft.section("times")["weight"] = draft.per_stage(1, 3)


def _fused(draft: Draft) -> None:
    draft.section("times")["fused"] = draft.per_stage(2, 7)


def _overlapped(draft: Draft) -> None:
    draft.section("times")["overlapped"] = draft.of_stages(2, 8)


def _saves(draft: Draft) -> None:
    """Blocks that save no more than any of the passes takes."""
    times = draft.section("times")
    least = min((_least(times.get(key)) for key in ("forward", "backward", "fused") if key in times), default=0)
    times["overlapped"] = {"saves": draft.of_stages(0, least)}


def _least(times: Any) -> int:
    """The least of a number, a list, or numbers of pieces."""
    if isinstance(times, Mapping):
        return int(times["first"])
    return min(map(_least, times)) if isinstance(times, list) else int(times)


def _tasks(draft: Draft) -> None:
    """Passes of one or two tasks on two streams, in place of the times there are."""
    times, random = draft.section("times"), draft.random
    weight = times.get("weight")
    for key in ("forward", "backward", "weight"):
        times.pop(key, None)
    draft.document.setdefault("streams", ["compute", "comm"])

    def task(name: str, stream: str | None = None) -> Document:
        found: Document = {"name": name, "time": draft.per_stage(1, 3)}
        if stream is not None:
            found["on"] = stream
        return found

    forward = [task("attn"), task("dispatch", "comm")][: random.choice((1, 2))]
    backward = [task("dispatch", "comm"), task("attn")][-random.choice((1, 2)) :]
    draft.document["tasks"] = {"forward": forward, "backward": backward}
    if weight is not None:
        own = task("attn-w")
        if random.random() < HALF:
            own["after"] = backward[0]["name"]
        draft.document["tasks"]["weight"] = [own] + ([task("mlp-w", "comm")] if random.random() < 0.3 else [])


def _lookups(draft: Draft) -> None:
    tasks = draft.section("tasks")
    first: Document = {"name": "lookup", "time": draft.random.randint(1, 3), "needs": "nothing"}
    if draft.random.random() < HALF:
        first["on"] = "comm"
    tasks["forward"] = [first, *tasks["forward"]]


def _layers(draft: Draft) -> None:
    draft.section("tasks")["layers"] = draft.random.choice((2, draft.times(1, 2, draft.stages)))


def _transfer(draft: Draft) -> None:
    draft.section("times")["transfer"] = draft.random.randint(1, 2)


def _transfers(draft: Draft) -> None:
    draft.section("times")["transfer"] = draft.times(0, 3, draft.stages)


def _links(draft: Draft) -> None:
    devices = draft.document["devices"]
    rows = [draft.times(0, 3, devices) for _ in range(devices)]
    draft.section("times")["transfer"] = [
        [0 if a == b else lag for b, lag in enumerate(row)] for a, row in enumerate(rows)
    ]


def _nodes(draft: Draft) -> None:
    nodes = draft.times(0, 1, draft.document["devices"])
    draft.section("times")["transfer"] = {
        "intra_node": draft.random.randint(0, 1),
        "inter_node": draft.random.randint(1, 3),
        "nodes": nodes,
    }


def _sending(draft: Draft) -> None:
    times = draft.section("times")
    draft.document.setdefault("streams", ["compute", "comm"])
    times["transfer"] = {"time": times["transfer"], "on": draft.random.choice(draft.document["streams"])}


def _both(draft: Draft) -> None:
    draft.section("times", "transfer")["both"] = True


def _capacity(draft: Draft, least: int = 1) -> int:
    """Memory that may bind: of an activation or some for each stage of the device that has most."""
    most_stages = -(-draft.stages // draft.document["devices"])
    return int(max(least, most_stages) * draft.random.choice((1, 2, 2)) + draft.random.choice((0, 0, 1)))


def _memory(draft: Draft) -> None:
    draft.section("memory")["capacity"] = _capacity(draft)


def _capacities(draft: Draft) -> None:
    draft.section("memory")["capacity"] = [_capacity(draft) for _ in range(draft.document["devices"])]


def _static(draft: Draft) -> None:
    """A number, or one a device: room for it is added to the capacity."""
    memory, devices = draft.section("memory"), draft.document["devices"]
    static = draft.random.choice((1, draft.times(0, 2, devices)))
    memory["static"] = static
    _more_room(draft, static if isinstance(static, list) else [static] * devices)


def _static_of_stages(draft: Draft) -> None:
    memory, devices = draft.section("memory"), draft.document["devices"]
    memory["static"] = draft.times(0, 1, draft.stages)
    _more_room(draft, [sum(memory["static"])] * devices)


def _more_room(draft: Draft, extra: list[int]) -> None:
    memory = draft.section("memory")
    own = memory["capacity"]
    rooms = own if isinstance(own, list) else [own] * len(extra)
    memory["capacity"] = [room + more for room, more in zip(rooms, extra, strict=True)]


def _activations(draft: Draft) -> None:
    draft.section("memory").update(activation=_of_stages(draft, 1, 3), capacity=3 * _capacity(draft))


def _of_stages(draft: Draft, low: int, high: int) -> list[Any]:
    """One a stage; of pieces a list for each."""
    found = draft.times(low, high, draft.stages)
    return [[one, one] for one in found] if draft.document.get("sequence_chunks") else found


def _smallest(draft: Draft) -> int:
    own = draft.section("memory").get("activation", 1)
    values = own if isinstance(own, list) else [own]
    return int(min(min(one) if isinstance(one, list) else one for one in values))


def _freed(draft: Draft) -> None:
    draft.section("memory")["freed_by_backward"] = draft.random.choice((HALF, 1, _smallest(draft)))


def _taken_by_backward(draft: Draft) -> None:
    memory = draft.section("memory")
    memory["freed_by_backward"] = -draft.random.choice((HALF, 1))
    _more_room(draft, [1] * draft.document["devices"])


def _of_passes(draft: Draft, key: str) -> int:
    """Amounts of passes under a key, one at least, and the largest of them."""
    document = draft.document
    split = "weight" in (document.get("tasks") or document.get("times") or {})
    passes = ["forward", "backward", *(["weight"] if split else [])]
    chosen = draft.random.sample(passes, draft.random.randint(1, len(passes)))
    draft.section("memory")[key] = found = {one: draft.of_stages(0, 2) for one in chosen}
    return max(int(max(own)) if isinstance(own, list) else int(own) for own in found.values())


def _workspace(draft: Draft) -> None:
    most = _of_passes(draft, "workspace")
    _more_room(draft, [draft.random.choice((most, most // 2))] * draft.document["devices"])


def _until_end(draft: Draft) -> None:
    most = _of_passes(draft, "until_end") * draft.document["microbatches"] * draft.stages // 2
    _more_room(draft, [most] * draft.document["devices"])


def _offload(draft: Draft) -> None:
    memory = draft.section("memory")
    memory["offload"] = {"out": draft.per_stage(1, 3), "in": draft.random.randint(1, 3)}
    if draft.random.random() < HALF:
        memory["offload"]["amount"] = HALF
    if draft.random.random() < 0.3:
        memory["offload"]["on"] = draft.random.choice(("pcie", ["d2h", "h2d"]))


def _to_devices(draft: Draft) -> None:
    """Each device moves its activations to the next one, to the last one, or to the host."""
    devices = draft.document["devices"]
    peers: list[int | str] = [draft.random.choice(((d + 1) % devices, "host")) for d in range(devices)]
    peers[draft.random.randrange(devices)] = "host"
    draft.section("memory", "offload")["to"] = draft.random.choice((devices - 1, peers))


def _host(draft: Draft) -> None:
    random, devices = draft.random, draft.document["devices"]
    forms: tuple[Any, ...] = (1, draft.times(0, 2, devices), {"capacity": random.randint(1, 2), "devices": [0, 1]})
    draft.section("memory", "offload")["host_capacity"] = random.choice(forms)


def _shared_copies(draft: Draft) -> None:
    one = {"stream": "pcie", "devices": [0, 1]}
    draft.section("memory", "offload")["on"] = draft.random.choice((one, [one, "h2d"]))


def _recompute(draft: Draft) -> None:
    modes = [{"name": "full", "time": draft.of_stages(1, 3)}, {"name": "attention", "time": 1, "keeps": HALF}]
    draft.section("memory")["recompute"] = modes[: draft.random.choice((1, 2))]


def _decide(draft: Draft) -> None:
    """Let the solver decide on offload or on recomputation, and never on the other."""
    memory, random = draft.section("memory"), draft.random
    there = [key for key in ("offload", "recompute") if key in memory]
    chosen = random.choice(there)
    words = random.choice(
        ("always", "never", [random.choice(("free", "always", "never")) for _ in range(draft.stages)])
    )
    memory["decide"] = {chosen: words} | {key: "never" for key in there if key != chosen}


def _unequal(draft: Draft) -> None:
    count = draft.document["microbatches"]
    scale = [draft.random.choice((1, HALF, Fraction(3, 2), 2)) for _ in range(count)]
    draft.document["microbatch_scale"] = [2, *scale[1:-1], 1] if set(scale) == {1} else scale


def _any_order(draft: Draft) -> None:
    draft.document["microbatch_order"] = "free"


def _module(draft: Draft, name: str, **keys: Any) -> None:
    times = {"forward": draft.random.randint(1, 3), "backward": draft.random.randint(1, 3)}
    if "weight" in draft.section("times"):
        times["weight"] = draft.random.randint(1, 2)
    if draft.random.random() < HALF:
        times["transfer"] = draft.random.randint(1, 2)
    own: Document = {"times": times} | keys
    if "memory" in draft.document:
        own["memory"] = {"activation": draft.random.choice((HALF, 1))} | (
            {"static": 1} if draft.random.random() < HALF else {}
        )
        _more_room(draft, [2] * draft.document["devices"])
    draft.section("modules")[name] = own


def _encoder(draft: Draft) -> None:
    devices = draft.document["devices"]
    where = draft.random.choice(([0], [devices - 1], [0, 1]))
    _module(draft, "vision", placement=where, feeds=draft.random.choice((0, [0, 1])))


def _serves(draft: Draft) -> None:
    draft.document["microbatches"] = 2
    draft.section("modules", "vision")["serves"] = 2


def _replicated(draft: Draft) -> None:
    devices = draft.document["microbatches"] = draft.document["devices"]
    _module(
        draft, "audio", placement=draft.random.choice(("replicated", [[device] for device in reversed(range(devices))]))
    )


def _shared_embedding(draft: Draft) -> None:
    _module(draft, "embedding", placement="shared", feeds=0)


def _head(draft: Draft) -> None:
    _module(draft, "head", placement="shared", follows=draft.stages - 1, barriers=draft.random.choice((1, 2)))


def _module_parameters(draft: Draft) -> None:
    own = next(iter(draft.section("modules").values()))
    own["parameters"] = {"step": {"time": 1}}


def _batch(draft: Draft) -> None:
    overhead = {key: draft.random.randint(0, 2) for key in ("forward", "backward", "weight", "transfer")}
    draft.document["batch"] = {"size": 6 * draft.document["microbatches"], "overhead": overhead}


def _frozen(draft: Draft) -> None:
    """Some of the first stages of every chain, and the modules that they need."""
    chains = draft.document.get("chains")
    shortest = min(len(chain["stages"]) for chain in chains) if chains else draft.stages
    if draft.document.get("placement") == "bidirectional":
        shortest //= 2
    draft.document["frozen"] = draft.random.randint(1, shortest)
    frozen = set(range(draft.document["frozen"]))
    for keys in draft.document.get("modules", {}).values():
        fed = keys.get("feeds", 0)
        if "follows" not in keys and frozen & {*(fed if isinstance(fed, list) else [fed])}:
            keys["frozen"] = True


def _frozen_module(draft: Draft) -> None:
    draft.section("modules", "vision")["frozen"] = True


def _iteration(draft: Draft) -> Document:
    draft.document["objective"] = "iteration"
    return draft.section("parameters")


def _reduce(draft: Draft) -> None:
    _iteration(draft)["reduce"] = {"time": draft.of_stages(1, 4)} | draft.random.choice(
        ({}, {"on": "compute"}, {"on": "dp"})
    )


def _holders(draft: Draft) -> None:
    """The first stage of each device holds the parameters of its others."""
    where = draft.document["placement"]
    draft.section("parameters")["holders"] = [where.index(device) for device in where]


def _buckets(draft: Draft) -> None:
    draft.section("parameters", "reduce")["buckets"] = 2


def _step(draft: Draft) -> None:
    _iteration(draft)["step"] = {"time": draft.of_stages(1, 2)}


def _norm(draft: Draft) -> None:
    """A norm of all gradients on a stream of collectives, or on that of the passes."""
    first = draft.document.get("streams", ["compute"])[0]
    draft.section("parameters")["norm"] = {"time": draft.random.randint(0, 3)} | draft.random.choice(
        ({}, {"on": first})
    )


def _gather(draft: Draft) -> None:
    _iteration(draft)["gather"] = {"time": draft.of_stages(1, 2), "memory": 1} | draft.random.choice(
        ({}, {"on": "compute"})
    )
    if "memory" in draft.document:
        _more_room(draft, [1] * draft.document["devices"])


def _gather_once(draft: Draft) -> None:
    draft.section("parameters", "gather")["keep"] = "always"


def _never_kept(draft: Draft) -> None:
    draft.section("parameters", "gather")["keep"] = "never"


def _each_microbatch(draft: Draft) -> None:
    draft.section("parameters", "reduce")["every"] = "microbatch"


def _window(draft: Draft) -> None:
    draft.section("parameters", "gather")["keep"] = {"window": 1}


def _most(draft: Draft) -> None:
    draft.section("parameters", "gather")["most"] = draft.stages + draft.random.choice((0, 1))


def _overlap_next(draft: Draft) -> None:
    draft.document["overlap_next"] = True


def _objective(name: str) -> Any:
    def write(draft: Draft) -> None:
        draft.document["objective"] = name

    return write


def _free_memory(draft: Draft) -> None:
    draft.document |= {"objective": "free_memory", "then": draft.random.choice(("makespan", "span", "period"))}


def _labels(draft: Draft) -> None:
    draft.document |= {"name": 'a "name" <b>', "time_unit": "ms"}
    draft.section("memory")["unit"] = "GiB"


def _zeros(draft: Draft) -> None:
    """Passes of no length here and there."""
    times = draft.document.get("tasks") or draft.section("times")
    for key in ("forward", "backward", "weight"):
        value = times.get(key)
        if isinstance(value, list) and value and not isinstance(value[0], dict | list):
            times[key] = [0 if draft.random.random() < HALF else one for one in value]
        elif isinstance(value, int) and draft.random.random() < HALF:
            times[key] = 0
        elif isinstance(value, list) and isinstance(value[0], dict):
            draft.random.choice(value)["time"] = 0


def _nothing(_: Draft) -> None:
    """Apply a notation of numbers, or a command."""


SWITCHES = (
    Switch("interleaved", ("placement", "chunks"), _placed("interleaved", 2), "placement"),
    Switch("v-shape", ("placement",), _placed("v-shape"), "placement"),
    Switch("wave", ("placement", "chunks"), _placed("wave", 2), "placement"),
    Switch("bidirectional", ("placement",), _placed("bidirectional"), "placement"),
    Switch("own placement", ("placement",), _own_placement, "placement"),
    Switch("chains", ("chains.stages", "chains.microbatches"), _chains, "placement"),
    Switch("pipelines", ("pipelines.count",), _pipelines),
    Switch("lost worker", ("pipelines.lost",), _lost, "", ("pipelines",)),
    Switch("slow worker", ("pipelines.slow",), _slow, "", ("pipelines",)),
    Switch("pieces", ("sequence_chunks",), _pieces),
    Switch("weight", ("times.weight",), _weight),
    Switch("fused", ("times.fused",), _fused, "", ("weight",)),
    Switch("growing pieces", ("times.forward", "times.backward"), _growing, "", ("pieces",)),
    Switch("tasks", ("streams", "tasks.forward", "tasks.backward", "tasks.weight"), _tasks),
    Switch("layers", ("tasks.layers",), _layers, "", ("tasks",)),
    Switch("lookups", ("tasks.forward.needs",), _lookups, "", ("tasks",)),
    Switch("blocks", ("times.overlapped",), _overlapped),
    Switch("savings of blocks", ("times.overlapped",), _saves, "", ("blocks",)),
    Switch("transfer", ("times.transfer",), _transfer, "transfer"),
    Switch("transfer of stages", ("times.transfer",), _transfers, "transfer"),
    Switch("links", ("times.transfer",), _links, "transfer"),
    Switch("nodes", ("times.transfer",), _nodes, "transfer"),
    Switch("sending stream", ("times.transfer", "streams"), _sending, "", ("transfer",)),
    Switch("both devices", ("times.transfer.both",), _both, "", ("sending stream",)),
    Switch("capacity", ("memory.capacity",), _memory, "capacity"),
    Switch("capacities", ("memory.capacity",), _capacities, "capacity"),
    Switch("activations", ("memory.activation",), _activations),
    Switch("static", ("memory.static",), _static, "static", ("capacity",)),
    Switch("static of stages", ("memory.static",), _static_of_stages, "static", ("capacity",)),
    Switch("freed by backward", ("memory.freed_by_backward",), _freed, "freed", ("capacity",)),
    Switch("taken by backward", ("memory.freed_by_backward",), _taken_by_backward, "freed", ("capacity",)),
    Switch("workspace", ("memory.workspace",), _workspace, "", ("capacity",)),
    Switch("until the end", ("memory.until_end",), _until_end, "", ("capacity",)),
    Switch("kept for later", ("memory.kept_for_later",), _kept, "", ("pieces",)),
    Switch(
        "offload",
        ("memory.offload.out", "memory.offload.in", "memory.offload.amount", "memory.offload.on"),
        _offload,
        "",
        ("capacity",),
    ),
    Switch("host memory", ("memory.offload.host_capacity",), _host, "", ("offload",)),
    Switch("offload to devices", ("memory.offload.to",), _to_devices, "", ("offload",)),
    Switch("shared copies", ("memory.offload.on",), _shared_copies, "", ("offload",)),
    Switch(
        "recompute",
        ("memory.recompute.name", "memory.recompute.time", "memory.recompute.keeps"),
        _recompute,
        "",
        ("capacity",),
    ),
    Switch("decide", ("memory.decide.offload", "memory.decide.recompute"), _decide, "", ("recompute",)),
    Switch("unequal", ("microbatch_scale",), _unequal),
    Switch("free order", ("microbatch_order",), _any_order, "", ("unequal",)),
    Switch("encoder", ("modules",), _encoder),
    Switch("serves", ("modules",), _serves, "", ("encoder",)),
    Switch("replicated", ("modules",), _replicated),
    Switch("shared embedding", ("modules",), _shared_embedding),
    Switch("shared head", ("modules",), _head),
    Switch("batch", ("batch",), _batch),
    Switch("frozen", ("frozen",), _frozen),
    Switch("frozen module", ("modules",), _frozen_module, "", ("encoder",)),
    Switch("reduce", ("parameters.reduce.time", "parameters.reduce.on"), _reduce),
    Switch("holders", ("parameters.holders",), _holders, "", ("chains", "reduce")),
    Switch("buckets", ("parameters.reduce.buckets",), _buckets, "buckets", ("reduce",)),
    Switch("step", ("parameters.step.time",), _step),
    Switch("norm", ("parameters.norm.time", "parameters.norm.on"), _norm, "", ("step",)),
    Switch("gather", ("parameters.gather.time", "parameters.gather.on", "parameters.gather.memory"), _gather),
    Switch("gather once", ("parameters.gather.keep",), _gather_once, "keep", ("gather",)),
    Switch("never kept", ("parameters.gather.keep",), _never_kept, "keep", ("gather",)),
    Switch("each micro-batch", ("parameters.reduce.every",), _each_microbatch, "buckets", ("reduce",)),
    Switch("window", ("parameters.gather.keep",), _window, "keep", ("gather",)),
    Switch("most gathers", ("parameters.gather.most",), _most, "", ("gather",)),
    Switch("parameters of modules", ("modules",), _module_parameters, "", ("encoder", "step")),
    Switch("overlap next", ("overlap_next",), _overlap_next, "", ("step",)),
    Switch("span", ("objective",), _objective("span"), "objective"),
    Switch("period", ("objective",), _objective("period"), "objective"),
    Switch("free memory", ("objective", "then"), _free_memory, "objective", ("capacity",)),
    Switch("labels", ("name", "time_unit", "memory.unit"), _labels),
    Switch("zeros", ("times.forward",), _zeros),
    Switch("decimals", (), _nothing, "numbers"),
    Switch("fractions", (), _nothing, "numbers"),
    Switch("units", (), _nothing, "numbers"),
    Switch("17 digits", (), _nothing, "numbers"),
    Switch("large range", (), _nothing, "numbers"),
    Switch("from a state", (), _nothing),
)
BY_NAME = {one.name: one for one in SWITCHES}
