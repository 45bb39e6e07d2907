"""A module: stages of their own, such as a vision encoder, whose output some stages of the trunk need, or a head."""

from __future__ import annotations

from typing import NamedTuple


class Module(NamedTuple):
    """Stages `first` to before `first + stages * copies`, copy by copy; its passes feed stages `feeds` of the trunk.

    One pass serves so many micro-batches of the trunk as `serves` says. Copies take passes in turn; those of a `shared`
    module run a part of every pass each, joined by a collective. With `barriers` it is the head: the stage that it
    feeds precedes it, and that stage's backward its forwards' end, with two barriers after its backwards.
    """

    name: str
    first: int
    stages: int
    copies: int
    feeds: tuple[int, ...]
    serves: int
    shared: bool = False
    barriers: int = 0

    @property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """The stages of each copy, first to last."""
        begins = range(self.first, self.first + self.stages * self.copies, self.stages)
        return tuple(tuple(range(begin, begin + self.stages)) for begin in begins)
