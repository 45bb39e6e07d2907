"""The key `chains` of a problem file: different paths of micro-batches through the stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES, Columns, Feature, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, given, of_value
from pipesched.problem.features.walks import Walks
from pipesched.problem.problem import Problem

_KEY = "chains"


class Chain(Section):
    """Stages that some micro-batches go through, in this order; the backward goes through them in reverse."""

    required = ("stages", "microbatches")

    stages: field_types.StageNumbers | None = Field(None, description="the stages, first to last")
    microbatches: field_types.Count | None = Field(None, description="how many go through them: those that come next")


def _mistakes(form: ProblemForm, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a line for each broken rule of `chains`, except of keys already known as wrong.

    `stages` is the number of stages, None if not known.
    """
    if form.chains is None or any(path.split(".")[0] == _KEY for path in wrong):
        return
    chains: list[Chain] = form.chains
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
    # A mistyped number of devices can mean more stages than a list has room for.
    absent = next((stage for stage in range(stages) if stage not in counts), None)
    if absent is not None:
        yield f"chains: found no chain through stage {absent}; allowed: each stage in one"
    total = sum(chain.microbatches or 0 for chain in chains)
    if form.microbatches is not None and total != form.microbatches:
        yield f"chains: found {total} micro-batches in all; allowed: {form.microbatches}, as microbatches says"


def _fields(_problem: Problem, form: ProblemForm, _columns: Columns) -> dict[str, Walks]:
    return {"walks": Walks(tuple(chain.microbatches or 0 for chain in form.chains or ()))}


def _has_unjoined_chains(problem: Problem) -> bool:
    """Return True for chains of `chains` or `pipelines`; those of modules and pieces are joined by arcs."""
    return bool(problem.walks.shares) and not problem.chain_arcs.modules and problem.chain_arcs.pieces == 1


FEATURES.register(
    Feature(
        name=_KEY,
        mistakes=_mistakes,
        fields=_fields,
        refused=(
            Refused(
                of_value("objective", "period"),
                given(_KEY, in_problem=_has_unjoined_chains),
                "makespan or span",
                "no part of such a schedule repeats",
            ),
        ),
    )
)
