"""What holds a schedule up: the strongest argument in words, who comes close to it, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from pipesched.amounts import amount
from pipesched.certificate import Certificate
from pipesched.problem import Problem
from solver.bounds.catalogue import certificates
from solver.bounds.paths import Paths

# A device whose own argument comes this close to the strongest would bind next.
CLOSE = Fraction(1, 100)


@dataclass(frozen=True)
class Binding:
    """The strongest certificate in words, and what remains of it in relaxed problems; values in ticks.

    `proved` is what the whole solve proved, which a search may have brought further than words.
    `close` are the strongest certificates of other devices, within one per cent. `without_memory`,
    `without_transfers` and `without_both` are the strongest bounds in words with unlimited memory, with transfers that
    take no time, and with both. `work` is the most that a device computes, `busiest` that device.
    """

    problem: Problem
    proved: Certificate
    strongest: Certificate
    close: tuple[Certificate, ...]
    busiest: int
    work: int
    without_memory: int
    without_transfers: int
    without_both: int

    @property
    def device(self) -> int:
        """The device that the strongest certificate speaks of, if need be that in words; else the busiest one."""
        named = (self.proved.device, self.strongest.device, self.busiest)
        return next(device for device in named if device is not None)

    @property
    def binds(self) -> tuple[str, ...]:
        """What makes most of the bound beyond the busiest device's work: memory, transfers, or the way.

        The load, if the work is almost all of it; the interplay, if most of the rest is beyond words. What makes at
        least half as much as the first is named behind it.
        """
        bound = self.strongest.value
        if self.proved.value - self.work <= CLOSE * self.proved.value:
            return ("load",)
        parts = {
            "memory": bound - self.without_memory,
            "transfers": bound - self.without_transfers,
            "way": self.without_both - self.work,
            "interplay": self.proved.value - bound,
        }
        most = max(parts.values())
        return tuple(sorted((name for name in parts if 2 * parts[name] >= most), key=lambda name: -parts[name]))


def binding(problem: Problem, proved: Certificate | None = None) -> Binding:
    """Read it off the certificates, here and without memory limits or transfer times. No search.

    `proved` is the certificate of a solve.
    """
    found = certificates(problem, problem.objective)
    strongest = found[0]
    if proved is None or proved.value <= strongest.value:
        proved = strongest
    close: dict[int, Certificate] = {}
    for certificate in found:
        device = certificate.device
        if device not in (None, strongest.device) and certificate.value >= (1 - CLOSE) * strongest.value:
            assert device is not None
            close.setdefault(device, certificate)
    works = list(map(Paths(problem).work, range(problem.devices)))
    free = replace(problem, memory=replace(problem.memory, capacity=(None,) * problem.devices))
    at_once = (0,) * problem.placement.stages
    near, free_and_near = (replace(p, costs=replace(p.costs, transfer=at_once)) for p in (problem, free))
    values = [certificates(p, p.objective)[0].value for p in (free, near, free_and_near)]
    return Binding(problem, proved, strongest, tuple(close.values()), works.index(max(works)), max(works), *values)


def story(it: Binding) -> list[str]:
    """The finding in sentences: what binds, what it is made of, and who comes next."""
    problem, bound = it.problem, it.strongest.value
    device = f"device {it.device}"

    def say(ticks: int) -> str:
        return amount(problem, ticks)

    name = problem.objective.value
    headlines = {
        "load": f"The work binds: device {it.busiest} computes {say(it.work)} of any {name}'s {say(it.proved.value)}.",
        "memory": f"The memory of {device} binds.",
        "transfers": f"The links to {device} and back bind.",
        "way": f"The way through the pipeline binds: {device} waits for the first passes to arrive and return.",
        "interplay": "No single limit binds: beyond the work, devices wait on each other.",
    }
    advice = {
        "load": "Only less work there, or a part of it moved to another device, can help much.",
        "memory": "More memory there, or activations that take less of it, is what helps.",
        "transfers": "Faster links, or fewer crossings between devices, are what helps.",
        "interplay": "The changes below show what helps.",
        "way": "More micro-batches in an iteration make its share smaller.",
    }
    lines = [f"{headlines[name]} {advice[name]}" for name in it.binds]
    parts = [f"{say(it.work)} is the work of device {it.busiest}"]
    for ticks, cause in ((it.without_memory, "memory limits"), (it.without_transfers, "transfer times")):
        if ticks < bound:
            parts.append(f"without {cause} it would be {say(ticks)}")
    lines.append(f"The strongest bound in words is {say(bound)}: {'; '.join(parts)}.")
    if it.proved.value > bound:
        where = "" if it.proved.device is None else f" about device {it.proved.device}"
        lines.append(f"A proof by computation{where} goes further ({it.proved.kind}): {say(it.proved.value)}.")
    if it.close:
        others = ", ".join(f"device {c.device} ({c.kind}, {say(c.value)})" for c in it.close)
        lines.append(f"Within 1 % of it, and next to bind once it is relieved: {others}.")
    return lines
