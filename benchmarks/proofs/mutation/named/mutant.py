"""A named mutant: a mistake put into a file of the program, and the tests that must notice it."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.errors import BadInput


class NamedMutant(NamedTuple):
    """The text `old` of a file becomes `new`; `breaks` says what is then wrong, and one of `tests` must fail."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]

    def mutated(self, source: str) -> str:
        """The file's text with the mistake; `BadInput` unless the replaced text is there just once."""
        if source.count(self.old) != 1:
            raise BadInput(f"{self.name}: {self.file} has {source.count(self.old)} times {self.old!r}, not once")
        return source.replace(self.old, self.new)
