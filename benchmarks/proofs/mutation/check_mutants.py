"""Mistakes made by hand in the checks of these bounds: each accepts more, or refuses what is right."""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import HandMade

CHECK_MUTANTS: tuple[HandMade, ...] = ()
