"""Which parts of the engine a solve uses: all of them, unless a benchmark asks what one of them is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """Each part may be left out; what remains is still correct, only weaker.

    `certificates`: bounds with an argument, beyond the load. `relaxation`: the linear relaxations, and values
    refuted by some devices of the exact model. `periodic`: schedules that repeat one period. `neighbourhoods`:
    annealing, and windows of the incumbent solved anew. `literals`: order literals in the exact model; without them it
    is plain intervals.
    """

    certificates: bool = True
    relaxation: bool = True
    periodic: bool = True
    neighbourhoods: bool = True
    literals: bool = True
