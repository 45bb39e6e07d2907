"""Checks of a plan file that concern several keys at once; each runs on whatever keys are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from pipesched.files.fields.link_times import is_matrix, latency_of, wrong_size
from pipesched.files.fields.section import WrongPaths
from pipesched.files.limits import MOST_CELLS, MOST_LAYERS
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.files.plans.memory_section import PlanMemory
from pipesched.files.plans.schema import LayerEntry, PlanFile
from pipesched.files.schema_errors import shown, shown_amount
from pipesched.layers.plan_problem import Choice
from pipesched.problem.placement import FIXED_CHUNKS

# `free` leaves out the one that holds every layer twice.
_FREE = ("linear", "interleaved", "v-shape", "wave")
_DEFAULT_CHUNKS = [1, 2]


def plan_mistakes(form: PlanFile, wrong: WrongPaths) -> list[str]:
    """Return a line for each broken rule over several keys, except of key paths already known as wrong."""
    found = [] if any(path.split(".")[0] == "layers" for path in wrong) else [*_layers(form)]
    if form.devices is not None and not wrong & {"placement", "chunks"}:
        found += [*_choices(form)]
    choices = [] if wrong & {"placement", "chunks"} else choices_of(form)
    for feature in PLAN_FEATURES:
        for place, entry in feature.more_layers(form):
            found += [] if any(path.split(".")[0] == place for path in wrong) else _layer(place, entry, _unit(form))
        found += feature.mistakes(form, choices, wrong)
    capacity = form.memory.capacity if form.memory else None
    if isinstance(capacity, list) and form.devices is not None and len(capacity) != form.devices:
        found.append(
            f"memory.capacity: found {len(capacity)} values; allowed: one number, or a list of {form.devices}, "
            "one per device"
        )
    latency = latency_of(form.transfer)
    if isinstance(latency, list) and not is_matrix(latency):
        found.append("transfer: found a list; allowed: a number, or a row of numbers for each sending device")
    elif form.devices is not None and (size := wrong_size(latency, form.devices)):
        found.append(size.removeprefix("times."))
    return found


def _unit(form: PlanFile) -> str:
    return (form.memory or PlanMemory.model_validate({})).unit


def choices_of(form: PlanFile) -> list[Choice]:
    """Return all combinations of placement, chunks and pieces that the file allows, each once, in the file's order."""
    found = [Choice(*where) for where in _placements(form)]
    for feature in PLAN_FEATURES:
        found = [one for choice in found for one in feature.choices(choice, form)]
    return found


def _placements(form: PlanFile) -> list[tuple[str, int]]:
    given = form.chunks or _DEFAULT_CHUNKS
    names = (
        _FREE if form.placement == "free" else [form.placement] if isinstance(form.placement, str) else form.placement
    )
    found: dict[tuple[str, int], None] = {}
    for name in names:
        for chunks in given:
            if name in FIXED_CHUNKS:
                # A name alone brings its own number of chunks; among several, those listed decide.
                fits = FIXED_CHUNKS[name] == chunks or (form.chunks is None and len(names) == 1)
                found |= {(name, FIXED_CHUNKS[name]): None} if fits else {}
            elif chunks > (2 if name == "wave" and form.placement == "free" else 1):
                found[name, chunks] = None  # one chunk is linear, and a wave of two is a V
    return list(found)


def _layers(form: PlanFile) -> Iterator[str]:
    entries, unit = form.layers or [], _unit(form)
    for at, layer in enumerate(entries):
        place = f"layers[{at}]"
        yield from layer.missing(place)
        for number, entry in enumerate(layer.recompute or ()):
            yield from entry.missing(f"{place}.recompute[{number}]")
        yield from _layer(place, layer, unit)
    total = sum(layer.count for layer in entries)
    if form.layers is not None and not entries:
        yield "layers: found none; allowed: at least one"
    elif total > MOST_LAYERS:
        yield f"layers: found {total} in all; allowed: up to {MOST_LAYERS}"
    elif entries and entries[0].with_previous:
        yield "layers[0].with_previous: found true; allowed: false, since no layer is before it"
    first: dict[str, int] = {}
    for at, layer in enumerate(entries):
        before = entries[first.setdefault(layer.name or "", at)]
        if layer.name and layer.model_copy(update=_entry(before)) != before:
            yield (
                f"layers[{at}].name: found {layer.name!r} with other costs than layers[{first[layer.name]}] of that "
                "name; allowed: equal costs, or another name"
            )


def _entry(layer: LayerEntry) -> dict[str, object]:
    return {"count": layer.count, "with_previous": layer.with_previous}


def _layer(place: str, layer: LayerEntry, unit: str) -> Iterator[str]:
    if layer.fused is not None and layer.weight is None:
        yield f"{place}.fused: found without weight; allowed: with weight, since backward is then the full one"
    activation, freed = layer.activation or Fraction(0), layer.freed_by_backward or Fraction(0)
    if freed > activation:
        found, allowed = shown_amount(freed, unit), shown_amount(activation, unit)
        yield f"{place}.freed_by_backward: found {found}; allowed: at most the activation, {allowed}"
    for feature in PLAN_FEATURES:
        yield from feature.layer_mistakes(place, layer, unit)
    twice = [name for name, number in Counter(mode.name for mode in layer.recompute or ()).items() if number > 1]
    yield from (f"{place}.recompute: found {name!r} twice; allowed: each name once" for name in twice if name)


def _choices(form: PlanFile) -> Iterator[str]:
    """Yield mistakes of the placements allowed: none, none with as many stages as `partition`, or too many passes."""
    assert form.devices is not None
    choices = choices_of(form)
    if not choices:
        yield (
            f"chunks: found {', '.join(map(str, form.chunks or []))} with placement {shown(form.placement)}; allowed: "
            "1 for linear, 2 for v-shape and bidirectional, 2 or more for interleaved and wave"
        )
        return
    chains = {choice: choice.on(form.devices).chains[0] for choice in choices}
    if isinstance(form.partition, list):
        lengths = sorted({len(chain) for chain in chains.values()})
        if len(form.partition) not in lengths:
            allowed = " or ".join(map(str, lengths))
            yield f"partition: found {len(form.partition)} values; allowed: a list of {allowed}, one per stage"
    cells = form.devices * max(choice.chunks * choice.cut.number for choice in choices) * (form.microbatches or 1)
    if cells > MOST_CELLS:
        pieces = " and pieces" if not all(choice.whole for choice in choices) else ""
        yield f"microbatches: found {cells} stages times micro-batches{pieces}; allowed: up to {MOST_CELLS}"
