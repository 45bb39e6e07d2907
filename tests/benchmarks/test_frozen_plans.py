"""The attack on plans with frozen layers: it compares, and a wrong reference is seen."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from random import Random

import pytest

from benchmarks.matrix.exact.model import optimum
from benchmarks.matrix.plan_run import in_fractions
from benchmarks.proofs import frozen_plans
from tests.support.frozen_plans import frozen_plan, problems


@pytest.mark.parametrize("number", [5, 7])
def test_plans_are_as_every_partition_says(number: int) -> None:
    _, seen = frozen_plans.compare(number)
    assert "problems" in seen


def test_gradients_to_frozen_stages_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With backwards where there are none, some plan is below every partition."""

    def with_backwards(document: dict[str, object]) -> list[dict[str, object]]:
        return [one | {"frozen": 0} for one in problems(document)]

    def least(documents: Iterable[dict[str, object]]) -> Fraction:
        return min(one for one in (optimum(in_fractions(own)).least for own in documents) if one is not None)

    number = next(n for n in range(5, 40) if least(with_backwards(d := frozen_plan(Random(n)))) > least(problems(d)))
    monkeypatch.setattr(frozen_plans, "problems", with_backwards)
    with pytest.raises(AssertionError, match="below"):
        frozen_plans.compare(number)
