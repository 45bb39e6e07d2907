"""A switch: a feature of a file, and how a tiny document gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

Document = dict[str, Any]


class Draft:
    """A tiny document in the making, with what is drawn for it; numbers are integers and fractions."""

    def __init__(self, random: Random, document: Document) -> None:
        self.random, self.document = random, document

    def section(self, *path: str) -> Document:
        """The mapping at a path, made if it is missing."""
        mapping = self.document
        for key in path:
            mapping = mapping.setdefault(key, {})
        return mapping

    def times(self, low: int, high: int, count: int) -> list[int]:
        """So many times."""
        return [self.random.randint(low, high) for _ in range(count)]

    def of_stages(self, low: int, high: int) -> Any:
        """A number, or one a stage, of a key that pieces have in common."""
        return self.random.choice((self.random.randint(low, high), self.times(low, high, self.stages)))

    @property
    def stages(self) -> int:
        """The number of stages that the file describes."""
        placement, devices = self.document.get("placement", "linear"), self.document["devices"]
        if isinstance(placement, list):
            return len(placement)
        chunks = {"v-shape": 2, "bidirectional": 2}.get(placement, self.document.get("chunks", 1))
        return int(devices * chunks)

    def per_stage(self, low: int, high: int) -> Any:
        """A number, or one a stage."""
        if self.random.random() < 0.5:
            return self.random.randint(low, high)
        found = self.times(low, high, self.stages)
        # With pieces a list of numbers is one a piece.
        pieces = self.document.get("sequence_chunks")
        return [[one, one + self.random.randint(0, 1)] for one in found] if pieces else found


class Switch(NamedTuple):
    """A feature: the keys of the file that it writes, its group, of which a file has one, and what it stands on.

    A switch of an earlier place in its list is applied first.
    """

    name: str
    keys: tuple[str, ...]
    write: Callable[[Draft], None]
    group: str = ""
    needs: tuple[str, ...] = ()


def together(switches: Sequence[Switch], size: int) -> Iterator[tuple[str, ...]]:
    """The names of all sets of so many switches that have, with those that they stand on, one of a group at most."""
    by_name = {one.name: one for one in switches}
    needed = {name: [one for one in with_needed(by_name, [name]) if one.group] for name in by_name}
    for chosen in combinations(by_name, size):
        if size > 1:
            grouped = {one for name in chosen for one in needed[name]}
            if len({one.group for one in grouped}) < len(grouped):
                continue
        yield chosen


def with_needed(switches: Mapping[str, Switch], names: Sequence[str]) -> list[Switch]:
    """The switches of these names and those that they stand on, in the order of the list."""
    found, stack = set[str](), list(names)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += switches[name].needs
    return [one for one in switches.values() if one.name in found]
