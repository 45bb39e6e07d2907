"""From a plain document, whose numbers are integers and fractions, to cells and ties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from benchmarks.matrix.exact.cells import BACKWARD, FORWARD, Cell, Copies, Host, Recomputation, Shape, Spec, Tie
from benchmarks.matrix.exact.frozen import freeze, frozen_stages, untrained, without_gradients
from benchmarks.matrix.exact.modules import add_modules
from benchmarks.matrix.exact.once import once_of
from benchmarks.matrix.exact.values import of_device, of_stage
from benchmarks.matrix.exact.walks import Step, stage_devices, walks

_ZERO = Fraction(0)
Document = Mapping[str, Any]


def shape_of(document: Document) -> Shape:
    """All that the model needs of a document; a period is none of it."""
    document = of_a_microbatch(document)
    steps, devices = walks(document)
    pieces = document.get("sequence_chunks") or 1
    scale = [Fraction(one) for one in document.get("microbatch_scale") or [1] * len(steps)]
    rows = [
        [[_cell(document, step, j, k, pieces, scale[j]) for step in walk] for k in range(pieces)]
        for j, walk in enumerate(steps)
    ]
    shape = Shape(
        devices, _first(document), [cell for row in rows for line in row for cell in line], [], [],
        *_memory(document, devices), [], None, None, None, False,
    )  # fmt: skip
    for j, (walk, row) in enumerate(zip(steps, rows, strict=True)):
        for line in row:
            shape.ties += _walked(document, walk, line, scale[j])
        for earlier, later in pairwise(row):
            shape.ties += [Tie(a, FORWARD, b, FORWARD) for a, b in zip(earlier, later, strict=True)]
            shape.ties += [Tie(b, BACKWARD, a, BACKWARD) for a, b in zip(earlier, later, strict=True)]
    if set(scale) != {1} and document.get("microbatch_order", "fixed") == "fixed":
        shape.lines = _lines(shape.cells)
    _once(document, shape)
    if document.get("modules"):
        add_modules(document, shape, [row[0] for row in rows])
    without_gradients(shape)
    for tie in shape.ties:
        if tie.both and tie.lag:
            _receive(tie)
    shape.span = "span" in (document.get("objective"), document.get("then")) or bool(document.get("overlap_next"))
    return shape


def of_a_microbatch(document: Document) -> Document:
    """Of a whole batch's times and memory the share of one micro-batch, and the overhead of each pass."""
    batch, count = document.get("batch"), document["microbatches"]
    if batch is None:
        return document
    overhead = batch.get("overhead", {})

    def shared(value: Any, besides: Fraction) -> Any:
        if isinstance(value, list):
            return [shared(one, besides) for one in value]
        if isinstance(value, Mapping):
            return {key: one if key in ("nodes", "on", "both") else shared(one, besides) for key, one in value.items()}
        return Fraction(value) / count + besides

    times = {}
    for key, value in document["times"].items():
        times[key] = shared(value, Fraction(overhead.get("backward" if key == "fused" else key, 0)))
        if key == "transfer":
            times[key] = _without_empty(value, times[key])
    memory = dict(document.get("memory") or {})
    memory["activation"] = memory.get("activation", 1)
    for key in ("activation", "freed_by_backward", "workspace", "until_end"):
        if key in memory:
            memory[key] = shared(memory[key], _ZERO)
    return dict(document) | {"times": times, "memory": memory}


def _without_empty(before: Any, after: Any) -> Any:
    """Transfers that take no time of a batch take none of a micro-batch."""
    if isinstance(before, list):
        return [_without_empty(*both) for both in zip(before, after, strict=True)]
    if isinstance(before, Mapping):
        return {
            key: after[key] if key in ("nodes", "on", "both") else _without_empty(before[key], after[key])
            for key in before
        }
    return after if before else _ZERO


def _lines(cells: Sequence[Cell]) -> list[list[Cell]]:
    found: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.holder, []).append(cell)
    return [*found.values()]


def _first(document: Document) -> str:
    return str((document.get("streams") or ["compute"])[0])


def _cell(document: Document, step: Step, j: int, piece: int, pieces: int, scale: Fraction) -> Cell:
    s = step.stage
    longer = scale * step.slow
    times, memory = document.get("times") or {}, document.get("memory") or {}

    def number(section: Mapping[str, Any], key: str, default: Fraction | None = _ZERO) -> Fraction | None:
        value = section.get(key)
        return default if value is None else of_stage(value, s, piece, pieces)

    def amount(key: str, default: Fraction = _ZERO) -> Fraction:
        return (number(memory, key, default) or _ZERO) * scale

    forward, backward, weight, fused = _passes(document, s, number)
    activation = amount("activation", Fraction(1))
    of_blocks = times.get("overlapped")
    saving = of_blocks if isinstance(of_blocks, Mapping) else {}
    together = None if saving else number(times, "overlapped", None)
    saves = number(saving, "saves", None)
    found = Cell(
        device=step.device,
        holder=(step.device, _holder(document, s)),
        microbatch=j,
        forward=_longer(forward, longer),
        backward=_longer(backward, longer),
        weight=None if weight is None else _longer(weight, longer),
        fused=_longer(fused, longer),
        overlapped=None if together is None else together * longer,
        saves=None if saves is None else saves * longer,
        activation=activation,
        freed=amount("freed_by_backward"),
        kept_for_later=amount("kept_for_later"),
    )
    if piece == 0 and pieces > 1 and memory.get("kept_for_later") is not None:
        found.freed_of_pieces = sum(
            (of_stage(memory["kept_for_later"], s, k, pieces) for k in range(pieces)), _ZERO
        ) * scale  # fmt: skip
    found.workspace, found.until_end = (
        _of_passes(memory.get(key) or {}, s, scale) for key in ("workspace", "until_end")
    )
    if s in frozen_stages(document):
        freeze(found)
    _gather_first(document, found, s, step.slow)
    words = {key: _word(document, key, s) for key in ("offload", "recompute")}
    if words["offload"] != "never" and words["recompute"] != "always":
        own = memory["offload"]
        moved = own.get("amount")
        part = activation if moved is None else of_stage(moved, s, piece, pieces) * scale
        out, back = ((number(own, key) or _ZERO) * longer for key in ("out", "in"))
        found.copies = Copies(out, back, part, _peer(document, found.device))
    if words["recompute"] != "never" and words["offload"] != "always":
        found.recomputations = [
            Recomputation(
                of_stage(mode["time"], s) * longer,
                of_stage(mode.get("keeps", 0), s) * scale,
            )
            for mode in memory["recompute"]
        ]
    found.may_keep = "always" not in words.values()
    return found


def _gather_first(document: Document, cell: Cell, s: int, slow: Fraction) -> None:
    """Where parameters are never kept each F, B and BW begins with gathering them, and holds them while it runs."""
    own = (document.get("parameters") or {}).get("gather") or {}
    if own.get("keep") != "never":
        return
    of = _holder(document, s)
    first = Spec(own.get("on", "dp"), of_stage(own.get("time", 0), of) * slow, None, False)
    cell.forward = [first, *cell.forward]
    forward, backward, weight = cell.workspace
    parameters = of_stage(own.get("memory", 0), of)
    cell.workspace = forward + parameters, backward if cell.frozen else backward + parameters, weight
    if cell.frozen:
        return
    cell.backward, cell.fused = [first, *cell.backward], [first, *cell.fused]
    if cell.weight is not None:
        cell.weight = [spec if spec.after is None else spec._replace(after=spec.after + 1) for spec in cell.weight]


def _of_passes(section: Mapping[str, Any], stage: int, scale: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    forward, backward, weight = (of_stage(section.get(key, 0), stage) * scale for key in (FORWARD, BACKWARD, "weight"))
    return forward, backward, weight


def _word(document: Document, key: str, stage: int) -> str:
    """The decider of a stage's offload or recomputation."""
    memory = document.get("memory") or {}
    if memory.get(key) is None:
        return "never"
    word = (memory.get("decide") or {}).get(key, "free")
    return str(word[stage % len(word)] if isinstance(word, list) else word)


def _receive(tie: Tie) -> None:
    """The passes that get a tensor begin with its receipt, after any task that needs nothing."""
    cell = tie.other
    receipt = Spec(str(tie.stream), tie.lag, None, False, True)

    def receiving(own: list[Spec]) -> list[Spec]:
        place = next(n for n, spec in enumerate(own) if spec.needs_input)
        return [*own[:place], receipt, *own[place:]]

    if tie.other_kind == FORWARD:
        cell.forward = receiving(cell.forward)
        return
    cell.backward, cell.fused = receiving(cell.backward), receiving(cell.fused)
    if cell.weight is not None:
        cell.weight = [spec if spec.after is None else spec._replace(after=spec.after + 1) for spec in cell.weight]


def _longer(own: Sequence[Spec], longer: Fraction) -> list[Spec]:
    return [spec._replace(time=spec.time * longer) for spec in own]


def _passes(document: Document, s: int, number: Any) -> tuple[list[Spec], list[Spec], list[Spec] | None, list[Spec]]:
    """The tasks of F, B, W and BW."""
    first, tasks = _first(document), document.get("tasks")
    if tasks is None:
        times = document["times"]
        forward, backward = (number(times, key) for key in ("forward", "backward"))
        weight = number(times, "weight", None)
        whole = number(times, "fused", backward + (weight or 0))
        parts = None if weight is None else [Spec(first, weight)]
        return [Spec(first, forward)], [Spec(first, backward)], parts, [Spec(first, whole)]
    layers = tasks.get("layers", 1)
    count = layers[s % len(layers)] if isinstance(layers, list) else layers

    def specs(key: str) -> list[Spec]:
        return [
            Spec(
                task.get("on", first),
                of_stage(task["time"], s),
                None,
                task.get("needs") != "nothing",
            )
            for task in tasks.get(key) or ()
        ]

    forward, own, width = specs("forward") * count, specs("backward"), len(tasks["backward"])
    backward = own * count
    if tasks.get("weight") is None:
        return forward, backward, None, backward
    names = [task["name"] for task in tasks["backward"]]
    weight, fused, last = [], [], []
    for turn in range(count):
        pairs = list(zip(specs("weight"), (task.get("after") for task in tasks["weight"]), strict=True))
        for spec, name in pairs:
            weight.append(spec._replace(after=None if name is None else turn * width + names.index(name)))
        for n, one in enumerate(own):
            fused += [one, *(spec for spec, name in pairs if name == names[n])]
        last += [spec for spec, name in pairs if name is None]
    return forward, backward, weight, fused + last


def _walked(document: Document, walk: Sequence[Step], line: Sequence[Cell], scale: Fraction) -> Iterator[Tie]:
    for (a, one), (b, other) in pairwise(zip(walk, line, strict=True)):
        forth, back = link(document, a.stage, a, b) * scale, link(document, a.stage, b, a) * scale
        stream, both = sending(document), at_once(document)
        yield Tie(one, FORWARD, other, FORWARD, forth, stream, both)
        yield Tie(other, BACKWARD, one, BACKWARD, back, stream, both)


def sending(document: Document) -> str | None:
    """The stream of transfers."""
    transfer = (document.get("times") or {}).get("transfer")
    return transfer["on"] if isinstance(transfer, Mapping) and "on" in transfer else None


def at_once(document: Document) -> bool:
    """True if transfers occupy their receiver too."""
    transfer = (document.get("times") or {}).get("transfer")
    return isinstance(transfer, Mapping) and transfer.get("both") is True


def link(document: Document, stage: int, here: Step, there: Step) -> Fraction:
    """Time of the transfer between a stage and the next, from one device to another."""
    if here.device == there.device:
        return _ZERO
    transfer = (document.get("times") or {}).get("transfer", 0)
    if isinstance(transfer, Mapping) and "on" in transfer:
        transfer = transfer["time"]
    if isinstance(transfer, Mapping):
        near = transfer["nodes"][here.own] == transfer["nodes"][there.own]
        return Fraction(transfer["intra_node" if near else "inter_node"])
    if isinstance(transfer, list) and isinstance(transfer[0], list):
        return Fraction(transfer[here.own][there.own])
    return of_stage(transfer, stage)


def _memory(
    document: Document, devices: int
) -> tuple[list[Fraction | None], list[Host], tuple[str, str], dict[tuple[str, int], int]]:
    """The room for activations of each device, hosts, and the streams of copies."""
    memory, where = document.get("memory") or {}, stage_devices(document)
    workers = _workers(document, devices)
    rooms: list[Fraction | None] = [None] * devices
    static = memory.get("static", 0)
    if memory.get("capacity") is not None:
        for device, own in enumerate(workers):
            by_stage = isinstance(static, list) and len(static) != document["devices"]
            fixed = of_device(static, own)
            if by_stage:
                fixed = sum((Fraction(static[s]) for s, d in enumerate(where) if d == own), _ZERO)
            rooms[device] = of_device(memory["capacity"], own) - fixed
    offload = memory.get("offload")
    if offload is None:
        return rooms, [], ("d2h", "h2d"), {}
    on = offload.get("on", ["d2h", "h2d"])
    on = on if isinstance(on, list) else [on]
    names: list[str] = []
    shared: dict[tuple[str, int], int] = {}
    for one in (on[0], on[-1]):
        names.append(one["stream"] if isinstance(one, Mapping) else one)
        if isinstance(one, Mapping):
            for group in _groups(one["devices"], document):
                shared |= {(names[-1], device): min(group) for device in group}
    hosts, limit = [], offload.get("host_capacity")
    if limit is not None:
        groups = _groups(limit["devices"], document) if isinstance(limit, Mapping) else []
        among = {device for group in groups for device in group}
        groups += [[device] for device in range(devices) if device not in among]
        hosts = [
            Host(
                frozenset(group),
                Fraction(limit["capacity"]) if isinstance(limit, Mapping) else of_device(limit, workers[group[0]]),
            )
            for group in groups
        ]
    return rooms, hosts, (names[0], names[1]), shared


def _workers(document: Document, devices: int) -> list[int]:
    """The file's device of each device of the answer."""
    return list(range(devices)) if document.get("pipelines") is None else [d for _, d in _left(document)]


def _left(document: Document) -> list[tuple[int, int]]:
    """Pipeline and device of each worker that is left."""
    pipelines = document["pipelines"]
    lost = {tuple(worker) for worker in pipelines.get("lost", ())}
    return [(n, d) for n in range(pipelines["count"]) for d in range(document["devices"]) if (n, d) not in lost]


def _peer(document: Document, device: int) -> int | None:
    """The device of the answer that the activations of one of its devices move to; None for the host."""
    to = document["memory"]["offload"].get("to")
    if document.get("pipelines") is None:
        pipeline, own, left = 0, device, [(0, d) for d in range(document["devices"])]
    else:
        left = _left(document)
        pipeline, own = left[device]
    found = to[own] if isinstance(to, list) else None if to == own else to
    if found in (None, "host"):
        return None
    # Of the same pipeline, or where that worker is lost the first of the others.
    return min((n for n, (_, d) in enumerate(left) if d == found), key=lambda n: (left[n][0] != pipeline, n))


def _groups(value: Any, document: Document) -> list[list[int]]:
    """Devices that share something, those of each pipeline by themselves."""
    rows = value if isinstance(value[0], list) else [value]
    if document.get("pipelines") is None:
        return [list(row) for row in rows]
    left, count = _left(document), document["pipelines"]["count"]
    found = [[left.index(w) for w in left if w[0] == n and w[1] in row] for row in rows for n in range(count)]
    return [one for one in found if one]


def _holder(document: Document, s: int) -> int:
    """The stage whose parameters a stage computes with."""
    holders = (document.get("parameters") or {}).get("holders")
    return int(holders[s]) if holders else s


def _once(document: Document, shape: Shape) -> None:
    """Passes that each device runs once an iteration for the parameters of its stages."""
    section, first = document.get("parameters"), shape.first_stream
    if section is None:
        return
    slow: dict[tuple[int, int], Fraction] = {}
    for walk in walks(document)[0]:
        slow |= {(step.device, step.stage): step.slow for step in walk}
    for device, s in sorted(key for key in slow if _holder(document, key[1]) == key[1]):
        passes = sum(cell.holder == (device, s) for cell in shape.cells)
        own = once_of(section, first, device, s, slow[device, s], passes)
        trained = any(cell.holder == (device, s) and not cell.frozen for cell in shape.cells)
        shape.once.append(own if trained else untrained(own))
    if norm := section.get("norm"):
        shape.norm = Spec(norm.get("on", "dp"), of_stage(norm["time"], 0) * max(slow.values()))
    gather = section.get("gather") or {}
    shape.most_gathers = gather.get("most")
    keep = gather.get("keep")
    shape.window = keep["window"] if isinstance(keep, Mapping) else None
