"""How much later the labels of all states are after some rounds more, so that many rounds can be skipped."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from solver.diagram.first_stages.line import Numbers
from solver.diagram.repetition import BACK

_UNKNOWN = -(1 << 57)  # times below are none
_Labels = tuple[Numbers, Numbers]


def skip(rounds: Sequence[_Labels], most: int) -> int:
    """Delay the last labels by as many rounds as fit into `most`; how many these are.

    If after c rounds every label of a state is d or more behind one that the state had before, it is so after each c
    rounds more: a round keeps what is later later, and labels that are merged become earlier only. Which c gives most a
    round is taken.
    """
    labels, _ = rounds[-1]
    found = [(_delay(rounds[-1 - back], rounds[-1]), back) for back in BACK if back <= most]
    if not found:
        return 0
    delay, back = max(found, key=lambda one: Fraction(*one))
    times = most // back
    labels[labels > _UNKNOWN] += times * delay
    return int(times * back)


def _delay(before: _Labels, after: _Labels) -> int:
    """By how much each label is behind one of the same state before, at least; 0 where a state had none."""
    delays = []
    for old, had, new, has in zip(*before, *after, strict=True):
        if has and not had:
            return 0
        if has:
            known = new[0] > _UNKNOWN  # the same of all labels of a state
            behind = new[:has, None, known] - old[None, :had, known]
            delays.append(int(behind.min(axis=2).max(axis=1).min()))
    return max(0, min(delays))
