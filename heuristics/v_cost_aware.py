"""ZBV, V-Half and V-Min with their passes reordered for the real times, in the memory that the published order takes.

The published order is compacted by forward-backward improvement, known from project scheduling: from the end, every
pass as late as possible; then from the start, every pass as early as possible; repeated while it gets better. To leave
a local optimum, a few times the passes of one kind and some consecutive micro-batches are shifted and all is compacted
again. A schedule counts only if the exact simulator finds it better and within the published order's peak on every
device, so none of these is ever worse than the schedule it starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from heuristics.building.serial_sgs import Built, insert_all, pass_graph
from heuristics.building.v_blocks import V_HALF, V_MIN, v_block
from heuristics.catalogue import HEURISTICS, Heuristic
from heuristics.zbv import zbv
from pipesched.deadline import SHORT, asking
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.objectives.span import SPAN
from pipesched.problem.passes import B, F, W
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.simulation.simulator import simulate

ROUNDS = 4  # of forward-backward improvement, at most
TURNS = 8  # times the order is disturbed


def cost_aware(problem: Problem, published: Callable[[Problem], Schedule], name: str) -> Schedule:
    """Return the order of `published(problem)` improved for the real times, or unchanged, under the given name.

    Better means less makespan, or less span if the objective is a span or a period. Raises `DoesNotApply` where
    `published` does.
    """
    start = published(problem)
    search = _Search(problem, Schedule(start.orders, name))
    starts = search.drawn_together([search.of_best.start(p) for p in asking(search.graph.passes, SHORT)])
    random = Random(0)  # one problem, one schedule
    for _ in range(TURNS if search.may_improve() else 0):
        turned = search.drawn_together(search.turned(starts, random))
        if search.value(turned) <= search.value(starts):
            starts = turned
    return search.best


class _Search:
    """Search from a published schedule: the best one so far (`best`, timeline `of_best`, value `least` in ticks).

    `ceiling` is each device's peak in the published schedule, in steps of memory, `load` the ticks of the busiest
    device. `goal` is makespan or span. `graph` has the passes by number, `mirrored` the same with time reversed.
    """

    def __init__(self, problem: Problem, published: Schedule) -> None:
        self.problem, self.graph = problem, pass_graph(problem)
        self.mirrored = self.graph.mirrored()
        # Its span is the nearest to a period that a finite schedule has.
        self.goal = MAKESPAN if problem.objective.of_passes.from_zero else SPAN
        self.best, self.of_best = published, simulate(problem, published)
        found = measure(self.of_best)
        self.ceiling, self.least, self.load = found.peak_quanta, found.value_ticks(self.goal), max(found.work_ticks)

    def may_improve(self) -> bool:
        """True if the best value exceeds the busiest device's work, which is a lower bound."""
        return self.least > self.load

    def drawn_together(self, starts: Sequence[float]) -> list[float]:
        """Return starts in ticks, by pass number, after forward-backward improvement from `starts`.

        `starts`, by pass number, are priorities in the first round, and are returned if memory admits no schedule.
        Better schedules met are recorded.
        """
        best: Sequence[float] | None = None
        for _ in range(ROUNDS):
            built = insert_all(self.graph, starts, self.ceiling, [0] * self.problem.devices)
            if built is None or (best is not None and self.value(built.starts) >= self.value(best)):
                break
            self._offer(built)
            best = built.starts
            late = self._from_the_end(built)
            if late is None or not self.may_improve():
                break
            self._offer(late)
            starts = late.starts
        return list(best if best is not None else starts)

    def _from_the_end(self, built: Built) -> Built | None:
        """Return the schedule with every pass as late as possible; None if memory admits none.

        For the span, a device that begins later may also end later.
        """
        ends = [start + ticks for start, ticks in zip(built.starts, self.graph.ticks, strict=True)]
        opens = [0] * self.problem.devices
        if self.goal.by_device:
            first = [min((built.starts[n] for n in order), default=0) for order in built.orders]
            opens = [max(first) - begin for begin in first]
        found = insert_all(self.mirrored, [-end for end in ends], self.ceiling, opens)
        if found is None:
            return None
        last = max(start + ticks for start, ticks in zip(found.starts, self.graph.ticks, strict=True))
        starts = [last - start - ticks for start, ticks in zip(found.starts, self.graph.ticks, strict=True)]
        return Built(starts, [order[::-1] for order in found.orders])

    def _offer(self, built: Built) -> None:
        """Keep an order as the best if the simulator finds it better and within every device's published peak."""
        if self.value(built.starts) >= self.least:
            return
        passes = self.graph.passes
        schedule = schedule_of(((passes[n] for n in order) for order in built.orders), self.best.name)
        timeline = simulate(self.problem, schedule)
        found = measure(timeline)
        within = all(peak <= most for peak, most in zip(found.peak_quanta, self.ceiling, strict=True))
        if within and found.value_ticks(self.goal) < self.least:
            self.best, self.of_best, self.least = schedule, timeline, found.value_ticks(self.goal)

    def value(self, starts: Sequence[float]) -> float:
        """Return the makespan or span in ticks of these starts by pass number."""
        begin, end = [float("inf")] * self.problem.devices, [0.0] * self.problem.devices
        for start, ticks, d in zip(starts, self.graph.ticks, self.graph.device, strict=True):
            begin[d] = min(begin[d], start)
            end[d] = max(end[d], start + ticks)
        began = begin if self.goal.by_device else [0.0] * self.problem.devices
        return max(last - first for first, last in zip(began, end, strict=True))

    def turned(self, starts: Sequence[float], random: Random) -> list[float]:
        """Return starts with those of one kind's passes, on some micro-batches and legs, shifted at random.

        Starts are in ticks by pass number. All of these passes are shifted by the same time; micro-batches are
        consecutive.
        """
        m, p = self.problem.microbatches, self.problem.devices
        first = random.randrange(m)
        last = random.randrange(first, m)
        kind, leg = random.choice((F, B, W)), random.choice((None, 0, 1))
        shift = random.uniform(-1, 1) * random.choice((0.3, 1, 2, 4)) * self.load / m
        return [
            start + (shift if q.kind is kind and first <= q.microbatch <= last and leg in (None, q.stage // p) else 0)
            for start, q in zip(starts, self.graph.passes, strict=True)
        ]


_PUBLISHED: tuple[tuple[str, Callable[[Problem], Schedule], str], ...] = (
    ("zbv", zbv, "2p chunk activations"),
    ("v-half", partial(v_block, name="v-half", offsets=V_HALF), "2*floor((p+2)/2) chunk activations"),
    ("v-min", partial(v_block, name="v-min", offsets=V_MIN), "2*floor((p+4)/3) chunk activations"),
)
for _name, _order, _peak in _PUBLISHED:
    HEURISTICS.register(
        Heuristic(
            name=f"{_name}-cost-aware",
            reference=f"{_name} (Sea AI Lab), its passes reordered for the times given; forward-backward improvement "
            "as in Li and Willis, EJOR 56 (1992)",
            needs="v-shape placement; a backward that splits",
            bubble=f"never more than {_name}'s; it depends on the times, in no closed form",
            peak=f"at most {_name}'s on every device: {_peak}",
            order=partial(cost_aware, published=_order, name=f"{_name}-cost-aware"),
            searched=True,
            improves=_name,
        )
    )
