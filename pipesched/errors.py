"""Exceptions; each message says what was found, what is allowed and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class PipeschedError(Exception):
    """The root of every error this tool raises on purpose."""


class BadInput(PipeschedError):
    """The user's input is wrong (exit code 2); `mistakes` holds one line for each."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes: tuple[str, ...] = mistakes


class DoesNotApply(PipeschedError):
    """A published schedule that is not defined for this problem; the text is the reason, in one line."""


class Deadlock(PipeschedError):
    """An order that can never run to its end; `cycle` is the cycle of waits."""

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle: tuple[str, ...] = tuple(cycle)
        super().__init__("deadlock: " + " waits for ".join([*self.cycle, self.cycle[0]]))


class Disagreement(PipeschedError):
    """The solver's claim and the validator differ: a defect in this tool, never to be hidden.

    `kind` is the kind of argument that is no longer to be trusted, if one is to blame.
    """

    def __init__(self, text: str, kind: str | None = None) -> None:
        super().__init__(text)
        self.kind = kind


def defect_note(text: str) -> str:
    """What users read of a defect that was met and left out."""
    return f"A DEFECT OF PIPESCHED: {text.rstrip('.')}. Please report this with the problem file."


def did_you_mean(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """`; did you mean X?` for the known word nearest to a misspelt one, or nothing where none is as much alike."""
    spelt = {name.lower(): name for name in known}
    letters = sorted(word.lower())
    swapped = [name for name in spelt if sorted(name) == letters]  # two letters exchanged, as zvb for zbv
    near = swapped or get_close_matches(word.lower(), spelt, n=1, cutoff=alike)
    return f"; did you mean {spelt[near[0]]!r}?" if near else ""
