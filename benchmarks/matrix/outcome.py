"""The outcome of one case."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Outcome:
    """The steps that a case went through, and every fault found."""

    kind: str
    names: tuple[str, ...]
    seed: int
    refused: tuple[str, ...] = ()  # the lines of the reader, or of the search
    solved: bool = False
    proved: bool = False
    exact: bool = False  # compared with the exact model of the matrix
    brute: bool = False  # compared with every order of every stream
    commands: int = 0
    seconds: float = 0  # of processor, of this process
    faults: list[str] = field(default_factory=list)
    document: str = ""  # where there are faults

    def as_json(self) -> dict[str, Any]:
        """A line of the store."""
        return asdict(self)
