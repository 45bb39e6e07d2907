"""DynaPipe's instance with some devices relaxed: what arguments about few devices can prove."""

from __future__ import annotations

from benchmarks.unequal import dynapipe
from benchmarks.unequal_devices import Relaxed, relaxed
from solver.bounds.analytic.catalogue import certificates


def test_no_argument_about_the_last_device_alone_proves_more_than_head_and_tail() -> None:
    """Ticks are multiples of 200: 160200."""
    problem = next(one for one in dynapipe() if one.name == "DynaPipe, interleaved, free")
    assert relaxed(problem, (3,), 30, 2) == Relaxed(801, 801)
    assert 801 * problem.tick == 160_200
    assert certificates(problem, problem.objective)[0].value == 801


def test_more_devices_take_more_time() -> None:
    """None of them: the largest micro-batch's own way."""
    problem = next(one for one in dynapipe() if one.name == "DynaPipe, wave, free")
    alone, one = relaxed(problem, (), 30, 2), relaxed(problem, (0,), 30, 2)
    assert alone.value is not None and one.value is not None
    assert problem.in_units(alone.value) == 1.4 * 24000 * 3
    assert alone.value < one.bound
