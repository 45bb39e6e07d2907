"""The attacks on arguments of the exact model, on a few problems each."""

from __future__ import annotations

import pytest

from benchmarks.proofs import attack


@pytest.mark.parametrize("kind", ["buckets", "fractions", "symmetry"])
def test_no_argument_is_wrong(kind: str) -> None:
    counts: attack.Counts = {}
    for number in range(6):
        attack.count(number, counts, attack.KINDS[kind])
    assert counts[attack.ALL][attack.PROBLEMS] >= 4 and not counts[attack.ALL][attack.WRONG]
