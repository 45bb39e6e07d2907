"""Parsing of lists of whole numbers in settings, as JSON or separated by commas."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.files.schema_errors import shown
from runtime.partitions.staged_model import StageCounts


def numbers(name: str, text: str, least: int = 0) -> list[int]:
    """Parse a list such as `[6, 2, 4]` or `6,2,4`.

    `BadInput` for an empty or broken list, or the first entry that is no whole number from `least` up. `name` is the
    setting, for the message.
    """
    bare = text.strip()
    found = read_json(bare if bare.startswith("[") else f"[{bare}]", name)
    return _whole(name, found, least, text)


def rows(name: str, text: str, least: int = 0) -> list[list[int]]:
    """Parse a list of lists of equal length such as `[[1, 2], [2, 2]]`; a flat list is one row.

    `BadInput` for anything else, or numbers less than `least`; `name` is the setting, for the message.
    """
    found = read_json(text.strip(), name)
    if isinstance(found, list) and found and not isinstance(found[0], list):
        found = [found]
    if not isinstance(found, list) or not found:
        raise BadInput(f"{name}: found {shown(text)}; allowed: a list of lists of whole numbers")
    read = [_whole(name, row, least, text) for row in found]
    if len({len(row) for row in read}) > 1:
        raise BadInput(f"{name}: found rows of {', '.join(str(len(row)) for row in read)} numbers; allowed: one length")
    return read


def between_embedding_and_head(counts: list[int]) -> tuple[StageCounts, ...]:
    """Return stages with `counts` transformer layers, the embedding on the first and the head on the last."""
    last = len(counts) - 1
    return tuple(StageCounts(int(at == 0), layers, 0, int(at == last)) for at, layers in enumerate(counts))


def check_total(name: str, counts: list[int], layers: int) -> None:
    """Raise `BadInput` if the counts of stages do not sum to the model's `layers`.

    `name` is the setting, for the message.
    """
    if sum(counts) != layers:
        raise BadInput(f"{name}: found {sum(counts)} layers in all; allowed: the model's {layers}")


def check_length(name: str, found: int, devices: int, unit: str = "device") -> None:
    """Raise `BadInput` unless a list has as many entries (`found`) as there are `devices`.

    `name` is the setting, for the message. The message ends with the number of entries allowed, "one per" `unit`.
    """
    if found != devices:
        raise BadInput(f"{name}: found {found} entries; allowed: {devices}, one per {unit}")


def _whole(name: str, found: object, least: int, text: str) -> list[int]:
    if not isinstance(found, list) or not found:
        raise BadInput(f"{name}: found {shown(text)}; allowed: a list of whole numbers")
    wrong = [one for one in found if not isinstance(one, int) or isinstance(one, bool) or one < least]
    if wrong:
        raise BadInput(f"{name}: found {shown(wrong[0])}; allowed: whole numbers of at least {least}")
    return found


def layers_of_devices(name: str, text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the stages, one a device, of a list with the number of transformer layers of each device, given as text.

    `BadInput` unless there is one entry for each of `devices` and they add up to `layers`; `name` is the setting, for
    the message.
    """
    counts = numbers(name, text)
    check_length(name, len(counts), devices)
    check_total(name, counts, layers)
    return between_embedding_and_head(counts)
