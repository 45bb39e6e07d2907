"""Checks of `chains` and `pipelines`, which concern the other keys too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pipesched.files.limits import MOST_CELLS
from pipesched.files.problems.schema import ProblemFile


def chain_mistakes(form: ProblemFile, stages: int | None, wrong: frozenset[str]) -> Iterator[str]:
    """Every broken rule, one line each; none of what is already known as wrong."""
    for key in ("chains", "pipelines"):
        if getattr(form, key) is not None and not any(path.split(".")[0] == key for path in wrong):
            yield from _chains(form, stages) if key == "chains" else _pipelines(form, stages)


def _chains(form: ProblemFile, stages: int | None) -> Iterator[str]:
    chains = form.chains or []
    if not isinstance(form.placement, list):
        yield f"chains: found with placement {form.placement}; allowed: with a list of the device of each stage"
        return
    missing = [mistake for at, chain in enumerate(chains) for mistake in chain.missing(f"chains[{at}]")]
    if missing or not chains or stages is None:
        yield from missing or (["chains: found no entry; allowed: one or more"] if not chains else [])
        return
    counts = Counter(stage for chain in chains for stage in chain.stages or ())
    for stage, count in sorted(counts.items()):
        if stage >= stages:
            yield f"chains: found stage {stage}; allowed: 0 to {stages - 1}"
        elif count > 1:
            yield f"chains: found stage {stage} in {count} places; allowed: each stage once"
    absent = [stage for stage in range(stages) if stage not in counts]
    if absent:
        yield f"chains: found no chain through stage {absent[0]}; allowed: each stage in one"
    total = sum(chain.microbatches or 0 for chain in chains)
    if form.microbatches is not None and total != form.microbatches:
        yield f"chains: found {total} micro-batches in all; allowed: {form.microbatches}, as microbatches says"


def _pipelines(form: ProblemFile, stages: int | None) -> Iterator[str]:
    section = form.pipelines
    assert section is not None
    if section.count is None:
        yield from section.missing("pipelines")
        return
    if form.devices is None:
        return
    for key, workers in (("lost", section.lost), ("slow", [*section.slow])):
        for worker in workers:
            if worker.pipeline >= section.count or worker.device >= form.devices:
                yield (
                    f"pipelines.{key}: found worker {worker.pipeline}.{worker.device}; allowed: pipelines 0 to "
                    f"{section.count - 1}, devices 0 to {form.devices - 1}"
                )
    for worker in sorted(set(section.lost) & {*section.slow}):
        yield f"pipelines.slow: found worker {worker.pipeline}.{worker.device}, which is lost; allowed: one of the two"
    gone = Counter(worker.device for worker in {*section.lost})
    for device in sorted(device for device, count in gone.items() if count == section.count):
        yield f"pipelines.lost: found device {device} of every pipeline; allowed: one is left that holds its stages"
    cells = (stages or 0) * (form.microbatches or 0) * section.count
    if cells > MOST_CELLS:
        yield (
            f"pipelines.count: found {section.count}; allowed: up to {MOST_CELLS} stages times micro-batches, so "
            f"{MOST_CELLS * section.count // cells} here"
        )
