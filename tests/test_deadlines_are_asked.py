"""Long work asks for its deadline: every published schedule, bound, picture and file, of thousands of passes.

Counted in lines of Python between two looks at the deadline, so that no clock decides.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial

import pytest

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.checking.check import check_bound
from pipesched.deadline import asking
from pipesched.errors import BadInput, DoesNotApply
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.idle_causes import idle_times
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from plots.catalogue import PLOTS, Plot
from plots.html.document import document
from plots.render import render_plot
from runtime.exporters.catalogue import EXPORTERS, Exporter
from solver.bounds.analytic.catalogue import BOUNDS, Bound, certificates
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer
from solver.local_search.units.order_units import Units
from solver.planning.joint.orders import OrderArrays
from tests.support.asks import longest
from tests.support.daily import daily
from tests.support.makers import problem

DEVICES, MICROBATCHES = 8, 64  # 1,536 passes and more
# A loop over all passes that never looks runs more lines than this; of a million passes these would be a second or two.
MOST = 12_500

PLACED: dict[str, dict[str, object]] = {
    "linear": {},
    "v-shape": {"placement": "v-shape"},
    "interleaved": {"placement": "interleaved", "chunks": 2},
    "wave": {"placement": "wave", "chunks": 4},
    "bidirectional": {"placement": "bidirectional"},
}
# Improve a published schedule by hundreds of simulations, each of which asks: half a minute of a processor.
SLOW = ("v-half-cost-aware", "v-min-cost-aware", "zbv-cost-aware")
# These go over all passes without a look, for about as long as the file takes to be written.
OPEN = ()


@cache
def long(where: str) -> Problem:
    times = {"forward": 3, "backward": 3, "weight": 2, "transfer": 1}
    memory = {"capacity": 4 * DEVICES}
    return problem(DEVICES, MICROBATCHES, times=times, memory=memory, objective="span", **PLACED[where])


def timeline() -> Timeline:
    """Another one each time: a timeline keeps what was computed of it."""
    return simulate(long("linear"), HEURISTICS["zb-h1"].order(long("linear")))


def asks(work: Callable[[], object]) -> None:
    found = longest(work)
    assert found.lines <= MOST, f"{found.lines:,} lines without a look at the deadline, most of them {found.most}"


# A quarter of the schedules, pictures and files a day: each line is counted, which takes long.
@pytest.mark.parametrize(
    "heuristic", daily([one for one in HEURISTICS if one.name not in SLOW], 8), ids=lambda one: one.name
)
def test_published_schedules(heuristic: Heuristic) -> None:
    for where in PLACED:
        with suppress(DoesNotApply):
            asks(partial(heuristic.order, long(where)))


@pytest.mark.parametrize("where", ["linear", "v-shape"])
@pytest.mark.parametrize("bound", list(BOUNDS), ids=lambda one: one.name)
def test_bounds(bound: Bound, where: str) -> None:
    asks(lambda: bound.certify(long(where), long(where).objective))


@pytest.mark.parametrize("where", ["linear", "v-shape"])
def test_checks_of_bounds(where: str) -> None:
    strongest = {one.kind: one for one in reversed(certificates(long(where), long(where).objective))}
    for certificate in strongest.values():
        asks(partial(check_bound, long(where), certificate))


@pytest.mark.parametrize(
    "work",
    [
        lambda _: timeline(),
        validate,
        measure,
        idle_times,
        document,
        lambda one: best_times(one.problem, one.schedule),
        lambda one: sequential(one.problem),
        lambda one: Annealer(Units(one.problem, one.schedule)).arrays([]),
        lambda one: OrderArrays(one, one.problem.devices, [1] * (one.problem.devices - 1), False),
    ],
    ids=["simulate", "validate", "measure", "idle times", "chart", "best times", "sequential", "units", "order arrays"],
)
def test_what_is_done_with_a_schedule(work: Callable[[Timeline], object]) -> None:
    one = timeline()
    asks(lambda: work(one))


@pytest.mark.parametrize("plot", daily(list(PLOTS), 4), ids=lambda one: one.name)
def test_pictures(plot: Plot) -> None:
    one = timeline()
    asks(lambda: render_plot(one, plot))


@pytest.mark.parametrize(
    "exporter", daily([one for one in EXPORTERS if one.name not in OPEN], 5), ids=lambda one: one.name
)
def test_exported_files(exporter: Exporter) -> None:
    one = timeline()

    def work() -> None:
        with suppress(BadInput):
            exporter.export(one)

    asks(work)


def test_the_count_finds_a_loop_that_does_not_ask() -> None:
    def loop(every: int | None) -> None:
        for _ in asking(range(MOST), every) if every else range(MOST):
            pass

    assert longest(lambda: loop(None)).lines > MOST
    assert longest(lambda: loop(100)).lines < 1000
    assert "test_deadlines_are_asked.py" in longest(lambda: loop(None)).most
