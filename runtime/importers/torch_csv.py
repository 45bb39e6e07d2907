"""Importer of the CSV of PyTorch's pipeline runtime, compute-only or with communication: a row for each device."""

from __future__ import annotations

import csv
import re
from collections import Counter

from pipesched.errors import BadInput
from pipesched.problem.passes import BW, REDUCE, RESHARD, UNSHARD, B, F, Pass, Slot, W
from runtime.importers.catalogue import IMPORTERS, Importer, Orders

_KINDS = {"F": F, "I": B, "W": W, "B": BW}
_COMPUTE = re.compile(r"(\d+)([FIWB])(\d+)")
_PAIR = re.compile(r"\((\d+F\d+);(\d+[IB]\d+)\)OVERLAP_F_B")
# A full backward as older torch spelt it, whose B was the input's gradient alone.
_OLD = re.compile(r"\d+BW\d+")
_OF_PARAMETERS = re.compile(r"(\d+)(UNSHARD|RESHARD|REDUCE_GRAD)")
_PARAMETER_KINDS = {"UNSHARD": UNSHARD, "RESHARD": RESHARD, "REDUCE_GRAD": REDUCE}
# What a lowered schedule says besides: it moves tensors, and waits; the order of passes does not need it.
_OTHER = re.compile(r"\d+((WAIT_)?SEND_[FB]|RECV_[FB])\d+|\d+WAIT_REDUCE_GRAD")

_OLD_LETTERS = (
    "found old letters: up to torch 2.5 B was the input's gradient and BW a full backward, today they are I and B;"
    " replace every B that is no BW by I, then every BW by B"
)


def _recognises(text: str) -> bool:
    cells = [cell.strip() for cell in text.splitlines()[0].split(",")] if text.strip() else []
    first = next((cell for cell in cells if cell), "")
    return any(pattern.fullmatch(first) for pattern in (_COMPUTE, _PAIR, _OLD, _OF_PARAMETERS, _OTHER))


def _read(text: str) -> Orders:
    mistakes: list[str] = []
    orders: Orders = []
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        order: list[Slot] = []
        turns = Counter[tuple[str, str]]()  # the gatherings and releases of each stage so far
        for column, cell in enumerate(row, start=1):
            word = cell.strip()
            slot = _slot(word) or _of_parameters(word, turns)
            if slot is not None:
                order.append(slot)
            elif word and not _OTHER.fullmatch(word):
                mistakes.append(
                    f"row {number}, cell {column}: found {word!r}; allowed: an action such as 0F1 or 0SEND_F1"
                )
        orders.append(order)
    if _has_old_letters(text, orders):
        raise BadInput(_OLD_LETTERS)
    if mistakes:
        raise BadInput(*mistakes)
    return [order for order in orders if order]


def _has_old_letters(text: str, orders: Orders) -> bool:
    """Return True for a CSV with the letters of old PyTorch versions.

    Up to 2.5, BW was a full backward and B the gradient of the input alone; today these are B and I. So BW, or a W of a
    micro-batch that also has a full backward, shows old letters.
    """
    passes = {p for order in orders for slot in order for p in slot}
    return bool(_OLD.search(text)) or any(p.kind is W and Pass(BW, p.stage, p.microbatch) in passes for p in passes)


def _slot(word: str) -> Slot | None:
    pair = _PAIR.fullmatch(word)
    if pair:
        return _pass(pair[1]), _pass(pair[2])
    return (_pass(word),) if _COMPUTE.fullmatch(word) else None


def _of_parameters(word: str, turns: Counter[tuple[str, str]]) -> Slot | None:
    """Return the gather, drop or reduction of an entry (`word`) of the CSV as a pass; None for other entries.

    Its number counts from 0 those of the same name on the stage; `turns` has the counts so far and is updated.
    """
    match = _OF_PARAMETERS.fullmatch(word)
    if match is None:
        return None
    stage, name = match.groups()
    turns[stage, name] += 1
    return (Pass(_PARAMETER_KINDS[name], int(stage), turns[stage, name] - 1),)


def _pass(word: str) -> Pass:
    match = _COMPUTE.fullmatch(word)
    assert match
    return Pass(_KINDS[match[2]], int(match[1]), int(match[3]))


IMPORTERS.register(
    Importer(
        name="torch-csv",
        description="PyTorch's pipeline schedule CSV, compute_only or compute_comms",
        recognises=_recognises,
        read=_read,
    )
)
