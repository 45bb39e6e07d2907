"""Problems that the check covers: those that use only quantities known to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from pipesched.checking.finding import NotCoveredError
from pipesched.problem.problem import Problem

# What the arguments here read, or what decides nothing. A quantity that is added to problems later is not covered as
# soon as it is used, until the check has been taught what it means.
_PROBLEM = {
    "placement", "microbatches", "stages", "pools", "objective", "name", "units", "links",
    "resources", "walks", "chain_arcs", "notes",
}  # fmt: skip
_STAGE = {
    "forward", "backward", "weight", "fused", "transfer", "blocks", "activation", "freed", "static",
    "stream", "forward_only",
}  # fmt: skip
_POOL = {"capacity", "static"}
_RESOURCES = {"streams"}
_WALKS = {"shares", "queues"}


def require_covered(problem: Problem, also_known: frozenset[str] = frozenset()) -> None:
    """Raise `NotCoveredError` for a problem with quantities that the check does not know.

    `also_known` are names of further fields of the problem or its parts, which the argument that is checked knows. A
    problem with stages on different streams is never covered.
    """
    used = [name for name in unknown(problem) if name not in also_known]
    if used:
        raise NotCoveredError(f"the check does not cover problems with {used[0].replace('_', ' ')}")
    if len({stage.stream for stage in problem.stages}) > 1:
        raise NotCoveredError("the check does not cover stages on different streams")


def unknown(problem: Problem) -> list[str]:
    """Return the names of fields that the problem uses and the check does not know; empty if it knows all of them.

    A field that several stages use is named as often.
    """
    used = _used(problem, _PROBLEM)
    parts: tuple[tuple[Sequence[object], set[str]], ...] = (
        (problem.stages, _STAGE), (problem.pools, _POOL), ((problem.resources,), _RESOURCES),
        ((problem.walks,), _WALKS), ((problem.chain_arcs,), set()),
    )  # fmt: skip
    for owners, known in parts:
        used += [name for owner in owners for name in _used(owner, known)]
    return used


def _used(owner: Any, known: set[str]) -> list[str]:
    """Return the names of a dataclass's fields that are not in `known` and differ from their default.

    `owner` is the dataclass's instance.
    """
    return [one.name for one in fields(owner) if one.name not in known and getattr(owner, one.name) != _default(one)]


def _default(one: Field[Any]) -> object:
    if one.default is not MISSING:
        return one.default
    return None if one.default_factory is MISSING else one.default_factory()
