"""Exceptions; each message says what was found, what is allowed and what to do."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

# Defects of this tool, each with its traceback; silent unless a program that uses it listens.
DEFECTS = logging.getLogger(__name__)
DEFECTS.addHandler(logging.NullHandler())
_DEFECT = "A DEFECT OF PIPESCHED: "


class PipeschedError(Exception):
    """Base class of every error this tool raises on purpose."""


class BadInput(PipeschedError):
    """An error in the user's input (exit code 2); `mistakes` has one line for each."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes: tuple[str, ...] = mistakes


class DoesNotApply(PipeschedError):
    """A published schedule is not defined for this problem; the text is the reason, in one line."""


class Deadlock(PipeschedError):
    """An order that can never run to its end.

    Each entry of `cycle`, a pass or task as text, waits for the next, the last for the first; there is at least one.
    """

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle: tuple[str, ...] = tuple(cycle)
        super().__init__("deadlock: " + " waits for ".join([*self.cycle, self.cycle[0]]))


class Disagreement(PipeschedError):
    """The solver's claim and the validator differ: a defect in this tool, never to be hidden.

    `kind` is the kind of argument that is no longer to be trusted, None if none is the cause.
    """

    def __init__(self, text: str, kind: str | None = None) -> None:
        super().__init__(text)
        self.kind = kind


class OutOfRange(PipeschedError):
    """Numbers exceed the range of compiled code's arrays: whatever needs them is left out, which is no defect."""


def defect_note(text: str, error: BaseException | None = None) -> str:
    """Log a defect that was met, with the traceback of `error`, and return a note about it for users.

    `text` says what was left out because of it.
    """
    DEFECTS.error("%s", text, exc_info=error)
    return f"{_DEFECT}{text.rstrip('.')}. Please report this with the problem file."


def is_defect(note: str) -> bool:
    """Return True if a note reports a defect of this tool."""
    return note.startswith(_DEFECT)


def left_out_note(part: str, error: Exception) -> str:
    """Return a note for users on `part` of a search, its name, that ended with an error while other parts went on.

    `OutOfRange` and `MemoryError` are no defects; any other error is logged as one, and the note reports it.
    """
    if isinstance(error, OutOfRange):
        return f"{part} left out: {error}"
    if isinstance(error, MemoryError):
        return f"{part} left out: it needs more memory than this machine has free"
    return defect_note(str(error) if isinstance(error, Disagreement) else f"{part}: {raised(error)}", error)


def raised(error: BaseException) -> str:
    """Return an error in one line: its type, its text and the line of code that raised it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f", raised in {Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{f' ({text})' if text else ''}{where}"


def did_you_mean(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return `; did you mean X?` for the known word nearest to a misspelt one; empty if none is similar enough.

    `alike` is the least similarity, from 0 to 1 (equal); a known word of the same letters in another order is always
    similar enough. Upper and lower case are equal.
    """
    spelt = {name.lower(): name for name in known}
    letters = sorted(word.lower())
    swapped = [name for name in spelt if sorted(name) == letters]  # two letters exchanged, as zvb for zbv
    near = swapped or get_close_matches(word.lower(), spelt, n=1, cutoff=alike)
    return f"; did you mean {spelt[near[0]]!r}?" if near else ""
