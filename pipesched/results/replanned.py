"""What ordering the rest of an iteration anew gave: an order of all passes with their starts, a value and a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipesched.problem.formatting import amount
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.problem.state import Ran, State
from pipesched.results.gap import gap
from pipesched.results.solution import Status
from pipesched.schedule.schedule import Schedule, schedule_of


@dataclass(frozen=True)
class Replanned:
    """`passes` are all passes with start and end, in ticks, those of the state as they were; None where none fits.
    Of passes of no length that stand at one tick the mapping has the order.

    No order of the rest ends before `lower_bound`.
    """

    problem: Problem
    state: State
    status: Status
    lower_bound: int
    passes: Mapping[Pass, Ran] | None = None

    @property
    def value(self) -> int | None:
        """The end of the iteration, in ticks."""
        return None if self.passes is None else max((one.end for one in self.passes.values()), default=0)

    def orders(self) -> list[list[Pass]]:
        """The passes of each device in turn."""
        passes, devices = self.passes or {}, range(self.problem.devices)
        return [
            sorted((p for p in passes if self.problem.device(p) == device), key=passes.__getitem__)
            for device in devices
        ]

    def schedule(self) -> Schedule | None:
        """The order of all passes, without the times that those which have begun took; None where there is none."""
        return None if self.passes is None else schedule_of(self.orders(), "replanned")

    def text(self) -> str:
        """The verdict in a line."""
        if self.value is None:
            why = "time ended before an order of what remains was found"
            why = "memory lets no order of what remains run to its end" if self.status is Status.INFEASIBLE else why
            return f"{self.status.value}: {why}"
        begun = (
            f"{len(self.state.ran)} passes as they were, {len(self.passes or ()) - len(self.state.ran)} ordered anew"
        )
        value, bound = amount(self.problem, self.value), amount(self.problem, self.lower_bound)
        share = f"{100 * gap(self.value, self.lower_bound):.2f} %"
        return f"{self.status.value}: makespan {value}, lower bound {bound}, gap {share}; {begun}"

    def document(self) -> dict[str, object]:
        """As JSON, in the unit of the problem."""
        units, passes = self.problem.in_units, self.passes or {}
        return {
            "status": self.status.value,
            "value": None if self.value is None else units(self.value),
            "lower_bound": units(self.lower_bound),
            "now": units(self.state.now),
            "orders": [
                [
                    {"name": pass_text(self.problem, p), "start": units(passes[p].start), "end": units(passes[p].end),
                     "fixed": p in self.state.ran}
                    for p in order
                ]
                for order in self.orders()
            ],
        }  # fmt: skip
