"""Modules: stages besides the trunk's, such as a vision encoder that feeds it, or a head that follows it."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import StageId


class Module(NamedTuple):
    """A module of a model: `copies` times `stages` stages, numbered from `first` on, copy by copy.

    Its passes feed the trunk's stages `feeds`; one pass serves `serves` micro-batches of the trunk. Copies take passes
    in turn, except in a `shared` module, where each copy runs a part of every pass and a collective joins the parts.
    With `barriers` (1 or 2) the module is a shared head: its forwards follow the trunk's stage in `feeds`, and that
    stage's backward waits for the parts of the head, through one barrier after their forwards or two after their
    backwards.
    """

    name: str
    first: StageId
    stages: int
    copies: int
    feeds: tuple[StageId, ...]
    serves: int
    shared: bool = False
    barriers: int = 0

    @property
    def chains(self) -> tuple[tuple[StageId, ...], ...]:
        """The stages of each copy of the module, first to last."""
        begins = range(self.first, self.first + self.stages * self.copies, self.stages)
        return tuple(tuple(range(begin, begin + self.stages)) for begin in begins)
