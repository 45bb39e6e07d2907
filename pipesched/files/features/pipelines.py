"""Data-parallel pipelines of the same model, some of whose workers are lost or slow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES, Feature, FeatureKeys
from pipesched.files.fields import field_types
from pipesched.files.fields.field import PLAIN_NUMBER, as_list, field, finite_number, whole_number
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, given, more_than_one, of_value
from pipesched.files.limits import MOST_CELLS
from pipesched.problem.chains.data_parallel import Worker, data_parallel
from pipesched.problem.problem import Problem

_WORKER = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
_PAIR: dict[str, Any] = {
    "type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2,
}  # fmt: skip


def _worker(value: object) -> Worker | None:
    numbers = [whole_number(0)(entry) for entry in as_list(value) or ()]
    found = [number for number in numbers if number is not None]
    return Worker(*found) if len(found) == len(numbers) == 2 else None


def _workers(value: object) -> list[Worker] | None:
    entries = as_list(value)
    found = [worker for entry in entries or () if (worker := _worker(entry)) is not None]
    return found if entries is not None and len(found) == len(entries) else None


def _factors(value: object) -> dict[Worker, Fraction] | None:
    if not isinstance(value, Mapping):
        return None
    found: dict[Worker, Fraction] = {}
    for key, given_factor in value.items():
        match, factor = _WORKER.fullmatch(key) if isinstance(key, str) else None, finite_number(given_factor)
        # Ticks become finer by the denominators of factors.
        if match is None or factor is None or not 0 < factor <= 100 or 1000 % factor.denominator:
            return None
        found[Worker(int(match[1]), int(match[2]))] = factor
    return found


class PipelinesSection(Section):
    """Data-parallel copies of the pipeline described by the other keys, each with as many micro-batches."""

    required = ("count",)

    count: field_types.Count | None = Field(None, description="how many pipelines there are")
    lost: Annotated[
        list[Worker], field("a list of pairs, [pipeline, device]", _workers, {"type": "array", "items": _PAIR})
    ] = Field([], description="workers whose passes go in turn to the others that hold the same stages")
    slow: Annotated[
        dict[Worker, Fraction],
        field(
            'a factor above 0 and up to 100, with at most 3 digits, for "pipeline.device" as text: {"0.2": 2}',
            _factors,
            {"type": "object", "additionalProperties": PLAIN_NUMBER},
        ),
    ] = Field({}, description="how many times as long all takes that a worker runs")


class Keys(FeatureKeys):
    """The key `pipelines`: data-parallel copies of the pipeline."""

    pipelines: PipelinesSection | None = Field(None, description="data-parallel copies of the pipeline, some damaged")


def _mistakes(form: Keys, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    section = form.pipelines
    if section is None or any(path.split(".")[0] == "pipelines" for path in wrong):
        return
    if section.count is None:
        yield from section.missing("pipelines")
        return
    if form.devices is None:
        return
    yield from _wrong_workers(section, section.count, form.devices)
    cells = (stages or 0) * (form.microbatches or 0) * section.count
    if cells > MOST_CELLS:
        yield (
            f"pipelines.count: found {section.count}; allowed: up to {MOST_CELLS} stages times micro-batches, so "
            f"{MOST_CELLS * section.count // cells} here"
        )


def _wrong_workers(section: PipelinesSection, count: int, devices: int) -> Iterator[str]:
    for key, workers in (("lost", section.lost), ("slow", [*section.slow])):
        for worker in workers:
            if worker.pipeline >= count or worker.device >= devices:
                yield (
                    f"pipelines.{key}: found worker {worker.pipeline}.{worker.device}; allowed: pipelines 0 to "
                    f"{count - 1}, devices 0 to {devices - 1}"
                )
    for worker in sorted(set(section.lost) & {*section.slow}):
        yield f"pipelines.slow: found worker {worker.pipeline}.{worker.device}, which is lost; allowed: one of the two"
    gone = Counter(worker.device for worker in {*section.lost})
    for device in sorted(device for device, lost in gone.items() if lost == count):
        yield f"pipelines.lost: found device {device} of every pipeline; allowed: one is left that holds its stages"


def _lower(problem: Problem, form: Keys) -> Problem:
    own = form.pipelines
    return problem if own is None else data_parallel(problem, own.count or 1, own.lost, own.slow)


_OWN, _EITHER = given("pipelines"), "one of the two"
_ONE_CHAIN = "such micro-batches are chains already"
_REFUSED = (
    *(Refused(_OWN, other, _EITHER, _ONE_CHAIN) for other in (more_than_one("sequence_chunks"), given("modules"))),
    Refused(_OWN, given("chains"), _EITHER, "pipelines are chains"),
    Refused(given("times.overlapped"), _OWN, _EITHER, "the partner of a pass may be on another path"),
    Refused(of_value("objective", "period"), _OWN, "makespan or span", "no part of such a schedule repeats"),
)

FEATURES.register(Feature(name="pipelines", keys=Keys, lower=_lower, mistakes=_mistakes, refused=_REFUSED))
