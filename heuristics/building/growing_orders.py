"""Orders built pass by pass: each pass is appended to its device's order and starts as early as possible there."""

from __future__ import annotations

from pipesched.deadline import ask
from pipesched.problem.passes import Pass
from pipesched.problem.problem import Objective
from pipesched.problem.quantities import Ticks


class GrowingOrders:
    """Orders built so far, with their times in ticks; all lists are indexed by device, as the caller numbers them.

    `put` appends a pass to a device's order, `value` returns the objective of the orders as they are. `orders[d]` are
    the passes of device d, `began_at[d]` the start of the first and `free_at[d]` the end of the last (0 without
    passes), `waited[d]` the idle time between them; `ends` has the end of each pass. No memory is counted.
    """

    def __init__(self, devices: int) -> None:
        self.orders: list[list[Pass]] = [[] for _ in range(devices)]
        self.began_at = [0] * devices  # when the device starts its first pass
        self.free_at = [0] * devices  # when the device has run everything put on it so far
        self.waited = [0] * devices  # its idle time after its first pass
        self.ends: dict[Pass, int] = {}

    def put(self, device: int, p: Pass, arrival: Ticks, ticks: Ticks) -> None:
        """Append a pass of `ticks` to a device's order; it starts at `arrival`, or later once the device is free."""
        ask()
        start = max(self.free_at[device], arrival)
        if self.orders[device]:
            self.waited[device] += start - self.free_at[device]
        else:
            self.began_at[device] = start
        self.free_at[device] = self.ends[p] = start + ticks
        self.orders[device].append(p)

    def value(self, objective: Objective) -> Ticks:
        """Return the makespan of the orders so far, in ticks.

        It is their longest span if the objective is a span or period.
        """
        began = [0] * len(self.began_at) if objective.of_passes.from_zero else self.began_at
        return max(end - start for start, end in zip(began, self.free_at, strict=True))
