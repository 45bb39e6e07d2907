"""The notation of Megatron's pipeline layout, `Et*3|(tt|)*29,m|L`: written in its shortest form, read, and checked.

`E` is the embedding, `t` a transformer layer, `m` a multi-token prediction layer, `L` the loss; `|` ends a stage and
commas mean nothing. `(...)*n` is unrolled first, then `x*n` for a single letter; there is no nesting. Stage number =
virtual rank * p + rank (megatron/core/transformer/pipeline_parallel_layer_layout.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from pipesched.errors import BadInput
from pipesched.files.schema_errors import shown
from runtime.partitions.staged_model import StageCounts

LETTERS = "EtmL"
_SHORTENED = 4  # this many equal letters are written x*n
_MOST_LETTERS = 100_000  # far more than any model has; a typing error in a factor would take all memory


def layout_text(counts: Sequence[StageCounts]) -> str:
    """Return the layout of these stages.

    Consecutive equal stages are written once, with a factor; the last stage is always written by itself.
    """
    stages = ["".join(_repeated(letter, number) for letter, number in zip(LETTERS, one, strict=True)) for one in counts]
    groups = [(text, len(list(equal))) for text, equal in groupby(stages)]
    last, number = groups.pop()
    groups += [(last, number - 1)] if number > 1 else []
    return "".join(f"{text}|" if times == 1 else f"({text}|)*{times}" for text, times in groups) + last


def _repeated(letter: str, number: int) -> str:
    return f"{letter}*{number}" if number >= _SHORTENED else letter * number


def read_layout(text: str) -> tuple[StageCounts, ...]:
    """Return the layers of each stage of a layout; `BadInput` if the text is none.

    Rules of Megatron on the stages are checked by `layout_mistakes`.
    """
    plain = _unrolled(_unrolled(text.strip().strip("'\"").replace(",", ""), r"\(([^()]+)\)\*(\d+)"), r"([^()*])\*(\d+)")
    strange = next((letter for letter in plain if letter not in LETTERS + "|"), None)
    if strange is not None:
        raise BadInput(f"megatron: found {strange!r} in {shown(text)}; allowed: E, t, m, L, |, (...)*n and x*n")
    stages = plain.split("|")
    orders = [stage for stage in stages if list(stage) != sorted(stage, key=LETTERS.index)]
    if orders:
        raise BadInput(f"megatron: found {shown(orders[0])}; allowed: E, then t, then m, then L on a stage")
    return tuple(StageCounts(*(stage.count(letter) for letter in LETTERS)) for stage in stages)


def _unrolled(text: str, pattern: str) -> str:
    """Return the text with every `x*n` or `(...)*n` (what `pattern` finds) written out.

    `BadInput` if that is too long.
    """
    size = len(text) + sum(len(group) * int(number) for group, number in re.findall(pattern, text))
    if size > _MOST_LETTERS:
        raise BadInput(f"megatron: found a layout of {size} letters; allowed: up to {_MOST_LETTERS}")
    return re.sub(pattern, lambda match: match[1] * int(match[2]), text)


def checked_layout(name: str, text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage of a layout, given as text, for so many pipeline `devices`.

    `layers` is the number of the model's transformer layers. `BadInput` has a line for each rule of Megatron that they
    break; `name` is the setting, for messages.
    """
    counts = read_layout(text)
    broken = layout_mistakes(counts, devices, layers)
    if broken:
        raise BadInput(*(f"{name}: {mistake}" for mistake in broken))
    return counts


def layout_mistakes(counts: Sequence[StageCounts], devices: int, layers: int) -> list[str]:
    """Return a line for each rule of Megatron that the stages break; empty if it accepts them.

    There are so many pipeline `devices` and `layers` transformer layers.
    """
    if len(counts) % devices:
        return [f"found {len(counts)} stages; allowed: a multiple of the {devices} devices"]
    found = []
    for letter, index, place in (("E", 0, 0), ("L", 3, len(counts) - 1)):
        where = [at for at, one in enumerate(counts) for _ in range(one[index])]
        if where != [place]:
            on = f"on stage {', '.join(map(str, where))}" if where else "nowhere"
            found.append(f"found {letter} {on}; allowed: one {letter}, on stage {place}")
    total = sum(one.layers for one in counts)
    if total != layers:
        found.append(f"found {total} transformer layers; allowed: the model's {layers}")
    return found + _mtp_mistakes(counts, devices)


def _mtp_mistakes(counts: Sequence[StageCounts], devices: int) -> list[str]:
    where = [at for at, one in enumerate(counts) if one.mtp]
    if len(where) > 1:
        return [f"found m on stages {', '.join(map(str, where))}; allowed: all of them on one stage"]
    found = []
    for at in where:
        if at < len(counts) - devices or (at % devices == 0 and devices > 1):
            found.append(f"found m on stage {at}; allowed: on the last chunk of a device other than 0")
        if any(one.layers for one in counts[at + 1 :]):
            found.append(f"found t after stage {at}, which has m; allowed: m after every t")
    return found
