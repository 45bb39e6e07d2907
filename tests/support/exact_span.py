"""The least span of a tiny problem to the fraction of a tick: every order, each with its greatest cycle mean."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

from pipesched.problem.passes import Slot
from pipesched.problem.problem import Problem
from tests.support.brute_force import _Game, _ways_to_fuse


def least_span(problem: Problem) -> Fraction | None:
    """Over all orders whose passes of one kind run in micro-batch order; None if none fits the memory."""
    best: Fraction | None = None
    for game in sorted((_Game(problem, fused) for fused in _ways_to_fuse(problem)), key=_Game.load):
        orders = [list(game.orders(device, True)) for device in range(problem.devices)]
        fewest_first = sorted(range(problem.devices), key=lambda d: len(orders[d]))
        stack: list[dict[int, tuple[Slot, ...]]] = [{}]
        while stack:
            chosen = stack.pop()
            value = span_of(game, chosen)
            if value is None or (best is not None and value >= best):
                continue
            if len(chosen) == problem.devices:
                best = value
                continue
            device = fewest_first[len(chosen)]
            stack += [{**chosen, device: order} for order in orders[device]]
    return best


def span_of(game: _Game, chosen: dict[int, tuple[Slot, ...]]) -> Fraction | None:
    """The least span under these devices' orders, the others free to run everything at once; None: deadlock."""
    longest = game._longest_ways(chosen)
    if longest is None:
        return None
    _, between = longest
    means = [Fraction(0)]
    for n in range(1, len(chosen) + 1):
        for cycle in permutations(chosen, n):
            pairs = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
            if all(pair in between for pair in pairs):
                means.append(Fraction(sum(between[pair] for pair in pairs), n))
    return max(means)
