"""Parameters of decision diagrams: their width, limits on work and memory, and the thresholds that are tried."""

from __future__ import annotations

from dataclasses import dataclass

from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class DiagramParams:
    """Parameters shared by all decision-diagram bounds and by the searches that use their completion bounds."""

    width: int = tuned(
        512, "labels of a state", 1, 100_000,
        "8 and 64 took up to 60 % more work to the same bound on 17 problems of seeds 35 and 36 and of the Zero Bubble "
        "papers; few states ever have more labels, so that many cost about as much as few",
    )  # fmt: skip
    most_labels: int = tuned(200_000_000, "labels looked at in one run", 10_000, 10**10)
    most_numbers: int = tuned(50_000_000, "numbers of 4 or 8 bytes in memory at once", 10**6, 10**9)
    completion_numbers: int = tuned(3, "times as many, as estimated with the states that memory excludes", 1, 20)
    most_states: int = tuned(500_000, "estimated states of a set of devices, which take about a second", 1_000, 10**8)
    most_devices: int = tuned(4, "devices, or chains, modelled together; with blocks half as many", 1, 16)
    value_step: int = tuned(16, "part of the gap by which the threshold rises first: 1 / this", 1, 256)
    shortest_value_step: int = tuned(4, "part of the first step below which no smaller one is tried: 1 / this", 1, 64)
    quick: int = tuned(10_000, "states or labels that are looked at in a moment", 100, 10**6)


DIAGRAMS = DiagramParams()
