"""How the time to a gap of 1 % grows with devices and micro-batches: linear and V placement at 1p and .6p.

    python -m benchmarks.growth --seconds 15 --write docs/results/growth.md --picture docs/images/growth.png

Every point is one solve that stops at a gap of 1 %, or after --seconds: 60 points take at most 60 times as long.
Results are kept in a file after every point; --resume runs only those that are not there yet.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.reporting.command_line import keep_results, limits_of, parser_of
from benchmarks.reporting.engine_table import percent
from benchmarks.reporting.growth_plot import Curve, draw
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, link_to, show, table
from benchmarks.reporting.record import Record, settings_of
from benchmarks.reporting.store import Store
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem

COMMAND = "python -m benchmarks.growth"
GAP = 0.01
DEVICES = (4, 8, 16, 32, 64)
# Micro-batches a device.
LENGTHS = (2, 8, 32)
# GPT 1.5B on 8 devices, of arXiv 2401.10241; a V's stage takes half as long.
_TIMES = {"forward": "18.522", "backward": "18.086", "weight": "9.337", "transfer": "0.601"}


class Family(NamedTuple):
    """A placement, and the memory of a device in activations of a device's layers, as a share of p."""

    placement: str
    memory: Fraction

    @property
    def name(self) -> str:
        placement = "V" if self.placement == "v-shape" else self.placement
        return f"{placement}, {'1p' if self.memory == 1 else '.6p'}"

    def problem(self, devices: int, microbatches: int) -> Problem:
        chunks = 2 if self.placement == "v-shape" else 1
        times = {kind: Fraction(Decimal(time)) for kind, time in _TIMES.items()}
        document = {
            "name": f"{self.name} p={devices} m={microbatches}",
            "devices": devices,
            "microbatches": microbatches,
            "placement": self.placement,
            "times": {kind: time if kind == "transfer" else time / chunks for kind, time in times.items()},
            "memory": {"capacity": self.memory * devices, "activation": Fraction(1, chunks)},
            "objective": "span",
        }
        return problem_from(document, "benchmark growth")


FAMILIES = tuple(Family(placement, Fraction(cap)) for placement in ("linear", "v-shape") for cap in ("1", "0.6"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the table and the picture of all that was measured with the same settings."""
    parser = parser_of(COMMAND, __doc__, 15, "each point")
    parser.add_argument("--devices", type=int, nargs="+", default=DEVICES, metavar="P")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="M/P", help="micro-batches a device")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw seconds over passes as PNG or SVG")
    keep_results(parser, "growth")
    args = parser.parse_args(arguments)
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Every point, the table and the picture; 1 if a solve broke."""
    limits = replace(limits_of(args), gap=GAP)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a point at most")
    if args.resume:
        store.load()
    for family, p, length in product(FAMILIES, args.devices, args.lengths):
        problem = family.problem(p, length * p)
        if store.measure(problem.name, problem, limits):
            print(f"{problem.name}: {_cell(store.records[problem.name])}", file=sys.stderr, flush=True)
    found = store.under(settings_of(limits))
    text = markdown(args.devices, args.lengths, found, store.machine)
    if args.picture is not None:
        draw({family.name: curves(family, args.devices, args.lengths, found) for family in FAMILIES}, args.picture)
        text += link_to(args.picture, args.write, "seconds to a gap of 1 %")
    show(args.write, COMMAND, text)
    return 1 if any(one.error for one in found.values()) else 0


def passes(family: Family, devices: int, microbatches: int) -> int:
    """Forwards, backwards and weight passes."""
    return 3 * devices * microbatches * (2 if family.placement == "v-shape" else 1)


def curves(
    family: Family, devices: Sequence[int], lengths: Sequence[int], found: Mapping[str, Record]
) -> dict[int, Curve]:
    """By number of devices: passes, seconds, and whether the gap came to 1 % in them."""
    lines: dict[int, Curve] = {}
    for p in devices:
        for length in lengths:
            one = found.get(family.problem(p, length * p).name)
            if one is not None and not one.error:
                seconds = one.seconds_to(GAP)
                point = passes(family, p, length * p), one.wall if seconds is None else seconds, seconds is not None
                lines.setdefault(p, []).append(point)
    return lines


def markdown(devices: Sequence[int], lengths: Sequence[int], found: Mapping[str, Record], described: str) -> str:
    """Seconds to the gap by family, devices and length; the gap left where it was not reached."""
    lines = []
    for family in FAMILIES:
        for p in devices:
            cells = [found.get(family.problem(p, length * p).name) for length in lengths]
            most = f"{passes(family, p, max(lengths) * p):,}"
            lines.append([family.name, str(p), *("" if one is None else _cell(one) for one in cells), most])
    head = ("placement, memory", "p", *(f"m = {length}p, s" for length in lengths), f"passes at m = {max(lengths)}p")
    reached = sum(one.seconds_to(GAP) is not None for one in found.values())
    return "\n\n".join([described, table(head, lines), f"{reached} of {len(found)} points came to a gap of 1 %."])


def _cell(one: Record) -> str:
    if one.error:
        return one.error
    seconds = one.seconds_to(GAP)
    if seconds is not None:
        return f"{seconds:.1f}"
    return "no schedule" if one.gap is None else percent(one.gap)


if __name__ == "__main__":
    sys.exit(main())
