"""Kinds of bounds have a name for people each, in the words of the field; files keep the kind."""

from __future__ import annotations

from pipesched.checking.check import ARGUMENTS, check_bound
from pipesched.problem.problem import Objective
from pipesched.results.bound_names import bound_name
from solver.bounds.analytic.catalogue import BOUNDS
from tests.support.makers import problem


def test_names_tell_kinds_apart_and_use_no_house_words() -> None:
    names = [bound_name(kind) for kind in ARGUMENTS]
    assert len(set(names)) == len(names)
    assert not [name for name in names if "crossings" in name or "round trip" in name]


def test_the_check_says_the_name_and_the_file_the_kind() -> None:
    one = problem(4, 8, times={"forward": 2, "backward": 3}, memory={"capacity": 4})
    (found, *_) = BOUNDS["round trip"].certify(one, Objective.MAKESPAN)
    assert found.document()["kind"] == "round trip"
    assert "(pipeline latency under the memory limit, checked" in check_bound(one, found).text
