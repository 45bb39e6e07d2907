"""Modules: stages besides the trunk's, such as a vision encoder that feeds it, or a head that follows it."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import StageId


class Module(NamedTuple):
    """A module of a model: `copies` copies of `stages` stages, numbered from `first` on, copy by copy.

    Its passes feed the stages `feeds` of the trunk; one pass serves `serves` micro-batches of the trunk. Several copies
    take the passes in turn. In a `shared` module each copy instead runs a part of every pass, and a collective joins
    the parts.

    With `barriers` (1 or 2) the module is a shared head. Its forwards then follow the trunk's stage in `feeds`, and the
    backward of that stage waits for the head: with 1 barrier for the head's forwards on all devices, with 2 for its
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
