"""Parameters that tune a solve: their ranges, their page, and other values in a process of their own."""

from __future__ import annotations

import subprocess
import sys

from docs.make_parameters import PACKAGES, PAGE, page
from solver.parameters import parameter_classes, tuned_fields
from tests.support.in_turn import in_turn

CLASSES = [one for package in PACKAGES for one in parameter_classes(package)]


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page()


def test_class_names_are_unique_so_that_one_parameter_can_be_named() -> None:
    assert len({one.__name__ for one in CLASSES}) == len(CLASSES)


@in_turn("of", CLASSES, ids=lambda of: of.__name__)
def test_every_default_is_within_its_range(of: type) -> None:
    for default, tuned in tuned_fields(of).values():
        values = default if isinstance(default, tuple) else (default,)
        assert all(tuned.low <= value <= tuned.high for value in values if value is not None)


def test_other_values_reach_what_is_imported_later() -> None:
    """A subsolver's own field, a parameter class of a module, and a constant of compiled code."""
    code = """
from solver.parameters import override
override({"BeamSchedules.width": 7, "PoolParams.size": 3, "MoveParams.several": 0.25})
from solver.engine.subsolvers.beam_schedules import BeamSchedules
from solver.local_search import moves, pool
print(BeamSchedules().width, pool.POOL.size, moves._SEVERAL)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["7", "3", "0.25"]
