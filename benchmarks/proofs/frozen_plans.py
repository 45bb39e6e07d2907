"""Plans of tiny files with frozen layers against every partition, each by an exact model that knows no plan.

The problem of a partition is written from the file's own words (`tests/support/frozen_plans.py`), and the exact model
takes away the backwards of frozen stages by itself, so that none of the plan's reading is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from random import Random
from typing import Any

from benchmarks.matrix.exact.model import TooLargeError, optimum
from benchmarks.matrix.plan_run import in_fractions
from pipesched.checking.partitions.by_device import no_better_plan
from pipesched.files.plan_file import plan_problem_from
from pipesched.results.solution import Status
from solver.limits import Limits
from solver.planning.partitions.by_device import bound_by_device
from solver.planning.plan import plan as search
from tests.support.frozen_plans import frozen_plan, problems

# Most plans are proved in a second.
_SECONDS = 3.0


def features(document: Mapping[str, Any]) -> Iterator[str]:
    """Keys whose part in frozen plans is counted."""
    frozen = [layer.get("frozen", False) for layer in document["layers"]]
    yield from (["all frozen"] if all(frozen) else ["frozen before all that train"] if frozen[0] else [])
    yield from ["frozen behind"] if any(b > a for a, b in pairwise(frozen)) else []
    yield from (key for key in ("transfer", "memory", "parameters", "stage_overhead") if document.get(key))
    yield from ["chunks"] if document["chunks"] > 1 else []
    yield from ["weight"] if "weight" in document["layers"][0] else []


def compare(number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Features and outcome of the plan of this number; an assertion fails where it claims what is wrong."""
    document = frozen_plan(Random(number))
    has = ("all", *features(document))
    try:
        known = [optimum(in_fractions(one), _SECONDS) for one in problems(document)]
    except TooLargeError:
        return has, ("too many orders",)
    plan = plan_problem_from(document)
    found = search(plan, Limits(seconds=_SECONDS, workers=1))
    least = min((one.least for one in known if one.least is not None), default=None)
    most = min((one.most for one in known if one.most is not None), default=None)
    if most is None or least is None:
        assert found.value is None or least is not None, f"a plan of {found.value}, where none fits"
        return has, ("problems", "infeasible")
    assert found.value is not None, f"no plan, where one takes {most}"
    assert found.value >= least, f"{found.value} below {least}"
    assert found.status is not Status.OPTIMAL or found.value <= most, f"{found.value} is not the least, {most}"
    assert found.lower_bound <= most, f"a bound of {found.lower_bound} above a plan of {most}"
    for choice in plan.choices:
        bound = bound_by_device(plan, choice, None, lambda: False) * plan.tick
        assert bound <= most, f"a bound by device of {bound} above a plan of {most}"
    refuted = [choice for choice in plan.choices if no_better_plan(plan, choice, most + plan.tick / 9)]
    assert len(refuted) < len(plan.choices), f"the check takes a bound above {most}"
    return has, ("problems", *(["proved"] if found.status is Status.OPTIMAL else []))
