"""Arguments from the head of a Megatron log, which has lines of the form `name ........ value`."""

from __future__ import annotations

import re
from typing import Any

_DUMPED = re.compile(r"(?:^|[\s:\]])([A-Za-z_]\w*) \.{2,} ?(.*?)\s*$")
_PADDED = re.compile(r"padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: (\d+)\)")
_MICROBATCHES = re.compile(r"setting number of micro-?batches to(?: constant)? (\d+)")


def is_megatron_log(text: str) -> bool:
    """Return True if a text contains the list of arguments that Megatron prints."""
    return bool(re.search(r"(?m)-{3,} ?(?:\w+ )?arguments ?-{3,}", text)) and _dumped(text) != {}


def arguments_of_log(text: str) -> dict[str, Any]:
    """Return the arguments first listed in a log, as text by name, without those that are None or empty.

    The padded vocabulary and the number of micro-batches of later lines are added.
    """
    found = _dumped(text)
    if padded := _PADDED.search(text):
        found["padded_vocab_size"] = padded[1]
    if microbatches := _MICROBATCHES.search(text):
        found["num_microbatches"] = microbatches[1]
    return found


def _dumped(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        if found and "end of arguments" in line:
            break
        if (match := _DUMPED.search(line)) and match[2] not in ("", "None", "[]"):
            found.setdefault(match[1], match[2])
    return found
