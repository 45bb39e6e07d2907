"""What can go wrong, said so that the reader knows what was found, what is allowed and what to do."""

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
    """An order that can never run to its end; `circle` is the chain of waits that closes on itself."""

    def __init__(self, circle: Sequence[str]) -> None:
        self.circle: tuple[str, ...] = tuple(circle)
        super().__init__("deadlock: " + " waits for ".join([*self.circle, self.circle[0]]))


class Disagreement(PipeschedError):
    """The solver's claim and the validator differ: a defect in this tool, never to be hidden."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the known word nearest to a misspelt one, or nothing."""
    spelt = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), spelt, n=1)
    return f"; did you mean {spelt[near[0]]!r}?" if near else ""
