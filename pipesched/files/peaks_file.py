"""The file of measured memory peaks that the command `fit-memory` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, at_least, field, whole_number
from pipesched.files.fields.section import Section
from pipesched.files.file_names import stem_of
from pipesched.files.limits import MOST_LAYERS
from pipesched.files.plans.memory_section import PlanMemory
from pipesched.files.plans.schema import LayerEntry
from pipesched.files.problem_file import read_document
from pipesched.files.schema_errors import parse_model, shown
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.memory_peaks import Peak, PeaksFile, PeakStage


def _listed(accept: Any, allowed: str) -> field:
    def entries(value: object) -> object:
        found = as_list(value)
        accepted = None if found is None else [accept(one) for one in found]
        return accepted if accepted and None not in accepted else None

    return field(allowed, entries)


def _peak(value: object) -> object:
    """Return a peak of at least 0 as a fraction, False for null (a device not measured), and None for anything else."""
    return False if value is None else at_least(0)(value)


def _again(value: object) -> object:
    """Return the recomputed layers of a stage, one number or numbers by layer name; None for anything else."""
    if isinstance(value, Mapping):
        numbers = {str(name): whole_number(0)(number) for name, number in value.items()}
        return None if None in numbers.values() else numbers
    return whole_number(0)(value)


_COUNTS = "a list of whole numbers of at least 1, one per stage"
_PEAKS = "a list of numbers of at least 0, one per device, with null for one that was not measured"
_AGAIN = "a list, one entry per stage: whole numbers of at least 0, or such numbers by layer name"


class RunEntry(Section):
    """One measured run: the partition of the model into stages, and the peak memory of each device."""

    partition: Annotated[list[int], _listed(whole_number(1), _COUNTS)] | None = Field(
        None, description="layers of each stage"
    )
    microbatches: field_types.Count | None = Field(None, description="micro-batches; with 1f1b they tell in_flight")
    in_flight: Annotated[list[int], _listed(whole_number(0), _COUNTS)] | None = Field(
        None, description="micro-batches that each stage holds at the peak; default: as 1f1b does"
    )
    recompute: Annotated[list[Any], _listed(_again, _AGAIN)] | None = Field(
        None, description="layers recomputed on each stage: the first ones, or numbers by layer name; default none"
    )
    peaks: Annotated[list[Any], _listed(_peak, _PEAKS)] | None = Field(None, description="one per device")


class PeaksDocument(Section):
    """The keys of a peaks file: layers as in a plan file, without their memory, and measured runs."""

    name: field_types.Text | None = None
    time_unit: field_types.Text = ""
    memory: PlanMemory | None = Field(None, description="unit of the peaks; capacity, if it is to be written")
    layers: list[LayerEntry] | None = Field(None, description="the model's layers, first to last")
    runs: list[RunEntry] | None = Field(None, description="what was measured")


def read_peaks(path: str | Path) -> PeaksFile:
    """Read a YAML or JSON file of peaks; `BadInput` lists every mistake."""
    return peaks_from(read_document(path), str(path), stem_of(path))


def peaks_from(document: object, source: str = "peaks", default_name: str = "peaks") -> PeaksFile:
    """Read measured peaks from a dictionary with the keys of a peaks file; `BadInput` lists every mistake.

    The peaks are run by run, device by device, without devices that were not measured. `source` names the dictionary in
    messages; `default_name` is the name of the peaks if it has none.
    """
    try:
        form, mistakes, wrong = parse_model(PeaksDocument, document, ("layers", "runs"))
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    if not any(path.split(".")[0] in ("layers", "runs") for path in wrong):
        mistakes += _mistakes(form)
    if mistakes:
        raise BadInput(*(f"{source}: {mistake}" for mistake in mistakes))
    memory = form.memory or PlanMemory.model_validate({})
    room = memory.capacity
    return PeaksFile(
        tuple(map(_layer, form.layers or ())),
        tuple(peak for at, run in enumerate(form.runs or ()) for peak in _peaks_of(form, run, f"runs[{at}]")),
        memory.unit,
        form.name or default_name,
        None if room is None else tuple(room) if isinstance(room, list) else (room,),
        all(layer.forward is not None and layer.backward is not None for layer in form.layers or ()),
    )


def _mistakes(form: PeaksDocument) -> Iterator[str]:
    entries = form.layers or []
    yield from (f"layers[{at}].name: missing; it is required" for at, layer in enumerate(entries) if not layer.name)
    for key in ("layers", "runs"):
        if getattr(form, key) == []:
            yield f"{key}: found none; allowed: at least one"
    total = sum(layer.count for layer in entries)
    if total > MOST_LAYERS:
        yield f"layers: found {total} in all; allowed: up to {MOST_LAYERS}"
    if form.runs and all(
        run.peaks is not None and not any(peak is not False for peak in run.peaks) for run in form.runs
    ):
        yield "runs: found no peak that is not null; allowed: at least one"
    for at, run in enumerate(form.runs or []):
        yield from (f"runs[{at}].{text}" for text in _of_run(run, total))


def _of_run(run: RunEntry, total: int) -> Iterator[str]:
    """Yield a line for each broken rule of one run, without the run's key path; `total` is the number of layers."""
    for key in ("partition", "peaks"):
        if getattr(run, key) is None:
            yield f"{key}: missing; it is required"
    if run.partition is None or run.peaks is None:
        return
    stages, devices = len(run.partition), len(run.peaks)
    if sum(run.partition) != total:
        yield f"partition: found {sum(run.partition)} layers in all; allowed: the model's {total}"
    if stages % devices:
        yield f"peaks: found {devices}; allowed: one per device, a divisor of the {stages} stages"
    for key in ("in_flight", "recompute"):
        given = getattr(run, key)
        if given is not None and len(given) != stages:
            yield f"{key}: found {len(given)} values; allowed: a list of {stages}, one per stage"
    if run.in_flight is None and stages != devices:
        yield "in_flight: missing; it is required with several stages a device"
    if run.in_flight is None and run.microbatches is None:
        yield "microbatches: missing; it is required without in_flight"
    for stage, number in enumerate(run.recompute or []):
        again = sum(number.values()) if isinstance(number, dict) else number
        if stage < stages and again > run.partition[stage]:
            yield f"recompute[{stage}]: found {again}; allowed: up to the stage's {shown(run.partition[stage])} layers"


def _peaks_of(form: PeaksDocument, run: RunEntry, place: str) -> Iterator[Peak]:
    """Yield the peaks of a run, one for each measured device, with the stages on it.

    `place` is the run's key path, for messages. Stage s is on device s mod p.
    """
    assert run.partition and run.peaks and form.layers
    names = [str(layer.name) for layer in form.layers for _ in range(layer.count)]
    devices, stages = len(run.peaks), []
    for stage, number in enumerate(run.partition):
        layers, names = names[:number], names[number:]
        again = run.recompute[stage] if run.recompute else 0
        flight = run.in_flight[stage] if run.in_flight else min(run.microbatches or 0, devices - stage)
        stages.append(PeakStage(_counts(layers), _recomputed(layers, again, f"{place}.recompute[{stage}]"), flight))
    for device, amount in enumerate(run.peaks):
        if amount is not False:
            mine = tuple(stages[device::devices])
            yield Peak(mine, device == 0, device == (len(stages) - 1) % devices, amount, f"{place}, device {device}")


def _recomputed(layers: list[str], again: int | dict[str, int], place: str) -> dict[str, int]:
    if not isinstance(again, dict):
        return _counts(layers[:again])
    for name, number in again.items():
        if number > layers.count(name):
            raise BadInput(f"{place}: found {number} {name}; allowed: up to the stage's {layers.count(name)}")
    return again


def _counts(names: list[str]) -> dict[str, int]:
    return {name: names.count(name) for name in dict.fromkeys(names)}


def _layer(entry: LayerEntry) -> LayerType:
    """Return the layer type of an entry. Missing times become 0; `PeaksFile.timed` says that they are unknown."""
    zero = Fraction(0)
    modes = tuple(
        RecomputeMode(mode.name or "full", mode.time or zero, zero if mode.keeps is None else mode.keeps)
        for mode in entry.recompute or ()
    )
    return LayerType(
        str(entry.name),
        entry.forward or zero,
        entry.backward or zero,
        entry.count,
        entry.weight,
        entry.fused,
        recompute=modes,
        with_previous=entry.with_previous,
    )
