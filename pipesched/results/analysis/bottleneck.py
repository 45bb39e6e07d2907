"""The bottleneck of a problem: its strongest analytic bound, devices with similar bounds, and the bound's causes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pipesched.problem.attainable_spans import Value
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnStream, StreamTasks

# A device whose own argument comes this close to the strongest would bind next.
CLOSE = Fraction(1, 100)


class Cause(StrEnum):
    """A cause of a part of the bound: the busiest device's work, or something beyond it.

    `LOAD`: that work is almost all of the bound. `MEMORY` and `TRANSFERS` raise it. `STREAM`: a stream other than that
    which computes has most to do. `LATENCY`: the device waits for the first passes to arrive and to return.
    `INTERPLAY`: devices wait on each other, beyond any analytic bound.
    """

    LOAD = "load"  # the work is almost all of the bound
    MEMORY = "memory"
    TRANSFERS = "transfers"
    STREAM = "stream"  # another stream than that which computes has most to do
    LATENCY = "latency"  # the device waits for the first passes to arrive and to return
    INTERPLAY = "interplay"  # devices wait on each other: no analytic bound tells it


@dataclass(frozen=True)
class Bottleneck:
    """The strongest analytic certificate of a problem, and how the bound changes in relaxed problems; values in ticks.

    `proved` is the certificate of the whole solve, which may exceed the analytic bounds. `close` are the strongest
    certificates of other devices within one per cent. `without_memory`, `without_transfers` and `without_both` are the
    strongest analytic bounds with unlimited memory, with transfers that take no time, and with both. `work` is the most
    that a device computes, `busiest` that device.
    """

    problem: Problem
    proved: Certificate
    strongest: Certificate
    close: tuple[Certificate, ...]
    busiest: DeviceId
    work: Ticks
    without_memory: Value
    without_transfers: Value
    without_both: Value

    @property
    def device(self) -> DeviceId:
        """The device of the proved certificate, else of the strongest analytic one, else the busiest device."""
        named = (self.proved.device, self.strongest.device, self.busiest)
        return next(device for device in named if device is not None)

    @property
    def stream(self) -> str | None:
        """The stream whose tasks alone give the strongest analytic bound.

        None if it is the compute stream, or another argument.
        """
        on = self.strongest.evidence
        if not isinstance(on, OnStream | StreamTasks) or on.stream == self.problem.streams[0]:
            return None
        return on.stream

    @property
    def main_causes(self) -> tuple[Cause, ...]:
        """The causes of most of the bound beyond the busiest device's work, the largest first; never empty.

        It is the load alone if the work is at least 99 % of the proved bound, and the interplay of devices if most of
        the remainder is not analytic. Causes of at least half as much as the first one follow it.
        """
        bound = self.strongest.value_ticks
        if self.proved.value_ticks - self.work <= CLOSE * self.proved.value_ticks:
            return (Cause.LOAD,)
        parts = {
            Cause.MEMORY: bound - self.without_memory,
            Cause.TRANSFERS: bound - self.without_transfers,
            Cause.LATENCY if self.stream is None else Cause.STREAM: self.without_both - self.work,
            Cause.INTERPLAY: self.proved.value_ticks - bound,
        }
        most = max(parts.values())
        return tuple(sorted((name for name in parts if 2 * parts[name] >= most), key=lambda name: -parts[name]))


def bottleneck_sentences(it: Bottleneck) -> list[str]:
    """Return the bottleneck in sentences: the bound, its causes, and the next strongest device."""
    problem, bound = it.problem, it.strongest.value_ticks
    device = f"device {it.device}"

    def say(ticks: Value) -> str:
        return amount(problem, ticks)

    name = problem.objective.name
    share = float(100 * it.work / it.proved.value_ticks) if it.proved.value_ticks else 100.0
    lines = [
        f"Device {it.busiest} computes {say(it.work)} of any {name}'s {say(it.proved.value_ticks)}, {share:.1f} %: "
        + ("the work is the bottleneck." if it.main_causes == (Cause.LOAD,) else "most of the rest is as follows.")
    ]
    headlines = {
        Cause.MEMORY: f"The memory of {device} is the bottleneck.",
        Cause.TRANSFERS: f"The links to {device} and back are the bottleneck.",
        Cause.STREAM: f"Stream {it.stream} of {device} is the bottleneck.",
        Cause.LATENCY: "The pipeline's latency is the bottleneck: "
        f"{device} waits for the first passes to arrive and return.",
        Cause.INTERPLAY: "No single limit is the bottleneck: beyond the work, devices wait on each other.",
    }
    lines += [headlines[part] for part in it.main_causes if part in headlines]
    parts = [f"{say(it.work)} is the work of device {it.busiest}"]
    for ticks, cause in ((it.without_memory, "memory limits"), (it.without_transfers, "transfer times")):
        if ticks < bound:
            parts.append(f"without {cause} it would be {say(ticks)}")
    lines.append(f"The strongest analytic bound is {say(bound)}: {'; '.join(parts)}.")
    if it.proved.value_ticks > bound:
        where = "" if it.proved.device is None else f" about device {it.proved.device}"
        lines.append(f"A proof by computation{where} goes further ({it.proved.name}): {say(it.proved.value_ticks)}.")
    if it.close:
        others = ", ".join(f"device {c.device} ({c.name}, {say(c.value_ticks)})" for c in it.close)
        lines.append(f"Within 1 % of it, the next bottleneck once it is relieved: {others}.")
    return lines
