"""Checks of a plan file that concern several keys at once; each runs on whatever keys are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from pipesched.files.fields.link_times import is_matrix, latency_of, wrong_size
from pipesched.files.limits import MOST_CELLS, MOST_LAYERS
from pipesched.files.plans.fields import PieceChoices
from pipesched.files.plans.frozen import frozen_mistakes
from pipesched.files.plans.parameters import parameter_mistakes
from pipesched.files.plans.schema import LayerEntry, PlanFile, PlanMemory
from pipesched.files.schema_errors import shown, shown_amount
from pipesched.layers.encoder import EncoderPlacement
from pipesched.layers.pieces import Lengths
from pipesched.layers.plan_problem import Choice
from pipesched.layers.vocabulary import Vocabulary, is_vocabulary
from pipesched.problem.placement import FIXED_CHUNKS

# `free` leaves out the one that holds every layer twice.
_FREE = ("linear", "interleaved", "v-shape", "wave")
_DEFAULT_CHUNKS = [1, 2]


def plan_mistakes(form: PlanFile, wrong: frozenset[str]) -> list[str]:
    """Return a line for each broken rule over several keys, except of key paths already known as wrong."""
    found = [] if any(path.split(".")[0] == "layers" for path in wrong) else [*_layers(form)]
    if form.devices is not None and not wrong & {"placement", "chunks"}:
        found += [*_choices(form)]
    if not any(path.split(".")[0] in ("layers", "encoder") for path in wrong):
        found += frozen_mistakes(form)
    found += parameter_mistakes(form, [] if wrong & {"placement", "chunks"} else choices_of(form), wrong)
    capacity = form.memory.capacity if form.memory else None
    if isinstance(capacity, list) and form.devices is not None and len(capacity) != form.devices:
        found.append(
            f"memory.capacity: found {len(capacity)} values; allowed: one number, or a list of {form.devices}, "
            "one per device"
        )
    if form.vocabulary != Vocabulary.ONE and form.layers:
        found += [*_vocabulary(form)]
    if form.encoder is not None and not any(path.split(".")[0] == "encoder" for path in wrong):
        found += [*_encoder(form)]
    latency = latency_of(form.transfer)
    if isinstance(latency, list) and not is_matrix(latency):
        found.append("transfer: found a list; allowed: a number, or a row of numbers for each sending device")
    elif form.devices is not None and (size := wrong_size(latency, form.devices)):
        found.append(size.removeprefix("times."))
    return found


def _vocabulary(form: PlanFile) -> Iterator[str]:
    """Yield a mistake if a split vocabulary lacks embedding and head, or there is no other layer."""
    own = [is_vocabulary(layer.name or "") for layer in form.layers or ()]
    if all(own) or not any(own):
        yield (
            f"layers: found none but a vocabulary's, or none of these, with vocabulary {form.vocabulary}; "
            "allowed: an embedding, a head, others"
        )


def _encoder(form: PlanFile) -> Iterator[str]:
    """Yield mistakes of the section `encoder`: missing keys, and values that its placement does not allow."""
    own = form.encoder
    assert own is not None
    yield from own.missing("encoder")
    yield from _layer("encoder", own.as_layer, (form.memory or PlanMemory.model_validate({})).unit)
    devices, passes = form.devices or 1, (form.microbatches or 1) // own.serves
    if own.placement in (EncoderPlacement.OWN_DEVICE, EncoderPlacement.FREE):
        capacity = form.memory.capacity if form.memory else None
        rooms = set(capacity) if isinstance(capacity, list) else set()
        if devices < 2 or form.cluster is not None or len(rooms) > 1 or isinstance(latency_of(form.transfer), list):
            yield (
                f"encoder.placement: found {own.placement} with {'one device' if devices < 2 else 'unequal devices'}; "
                "allowed: first-stage, in-the-bubbles, replicated, or several equal devices and links"
            )
    if form.microbatches and form.microbatches % own.serves:
        yield f"encoder.serves: found {own.serves}; allowed: what divides the {form.microbatches} micro-batches"
    elif own.placement in (EncoderPlacement.REPLICATED, EncoderPlacement.FREE) and passes < devices:
        yield f"encoder.serves: found {passes} passes; allowed with {own.placement}: one or more for each device"


def choices_of(form: PlanFile) -> list[Choice]:
    """Return all combinations of placement and pieces that the file allows, each once."""
    counts, lengths = form.sequence_chunks or PieceChoices((1,), (Lengths.EQUAL,))
    attention = any(layer.attention or layer.attention_backward for layer in form.layers or ())
    # Without attention equal time is equal length.
    ways = [(count, how) for count in counts for how in (lengths if count > 1 and attention else (Lengths.EQUAL,))]
    return [Choice(*where, *way) for where in _placements(form) for way in ways]


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
    entries, unit = form.layers or [], (form.memory or PlanMemory.model_validate({})).unit
    for at, layer in enumerate(entries):
        place = f"layers[{at}]"
        yield from layer.missing(place)
        for way, entry in enumerate(layer.recompute or ()):
            yield from entry.missing(f"{place}.recompute[{way}]")
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
    kept = layer.kept_for_later or Fraction(0)
    if kept + max(Fraction(0), freed) > activation and freed <= activation:
        found, allowed = shown_amount(kept, unit), shown_amount(activation - max(Fraction(0), freed), unit)
        yield (
            f"{place}.kept_for_later: found {found}; allowed: at most the activation without what is freed, {allowed}"
        )
    backward, weight = layer.backward or Fraction(0), layer.weight or Fraction(0)
    most = backward if layer.fused is None else min(backward, layer.fused)
    share = layer.attention if layer.attention_backward is None else layer.attention_backward
    if share * (backward + weight) > most:
        key = "attention" if layer.attention_backward is None else "attention_backward"
        yield (
            f"{place}.{key}: found {float(share):g} of the full backward; allowed: no more than B, "
            f"{float(most / (backward + weight)):.3g}, since attention has no weights"
        )
    twice = [name for name, number in Counter(way.name for way in layer.recompute or ()).items() if number > 1]
    yield from (f"{place}.recompute: found {name!r} twice; allowed: each name once" for name in twice if name)


def _choices(form: PlanFile) -> Iterator[str]:
    """Yield a mistake if no placement allowed has a layer for every stage."""
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
            ways = " or ".join(map(str, lengths))
            yield f"partition: found {len(form.partition)} values; allowed: a list of {ways}, one per stage"
    cells = form.devices * max(choice.chunks * choice.pieces for choice in choices) * (form.microbatches or 1)
    if cells > MOST_CELLS:
        pieces = " and pieces" if form.sequence_chunks else ""
        yield f"microbatches: found {cells} stages times micro-batches{pieces}; allowed: up to {MOST_CELLS}"
