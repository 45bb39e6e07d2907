"""Output to terminals whose encoding lacks characters: these are replaced by similar ones."""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import TextIO

_HANDLER = "pipesched-transliterate"

# What this program itself prints; anything else falls back to its letter without marks, or a question mark.
_ASCII = {
    "–": "-", "—": "-", "−": "-", "·": "-", "•": "-", "×": "x", "±": "+-", "…": "...", "≤": "<=", "≥": ">=",
    "→": "->", "←": "<-", "≈": "~", "‘": "'", "’": "'", "“": '"', "”": '"', "\u00a0": " ", "µ": "u", "μ": "u",
    "█": "#", "░": "-", "▓": "=",
}  # fmt: skip


def transliterate(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler that replaces the characters that cannot be encoded.

    Returns (text in their place, position at which to go on). Errors of decoding are raised again.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_ASCII.get(character) or _without_marks(character) for character in missing), error.end


def _without_marks(character: str) -> str:
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"


codecs.register_error(_HANDLER, transliterate)


def never_fail_to_print() -> None:
    """Make standard output and error replace characters that their encoding lacks, so that printing never fails.

    If standard error is closed, its messages are discarded, and cannot end up in a file that gets its number.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        # UTF-8 too lacks bytes of file names that are none. A stream whose file was exchanged for a pipe stays.
        with suppress(OSError):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors=_HANDLER)


def encodable(text: str) -> str:
    """Return text as standard output will show it, so that its width can be measured."""
    if _is_unicode(sys.stdout):
        return text
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, _HANDLER).decode(encoding)


def _is_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "utf-8").lower().replace("-", "").replace("_", "").startswith("utf")
