"""All mistakes made by hand: in bounds, and in their checks."""

from __future__ import annotations

from benchmarks.proofs.mutation.bound_mutants import BOUND_MUTANTS
from benchmarks.proofs.mutation.chain_mutants import CHAIN_MUTANTS
from benchmarks.proofs.mutation.check_mutants import CHECK_MUTANTS
from benchmarks.proofs.mutation.cool_mutants import COOL_MUTANTS
from benchmarks.proofs.mutation.guided_mutants import GUIDED_MUTANTS
from benchmarks.proofs.mutation.some_whole_mutants import SOME_WHOLE_MUTANTS
from benchmarks.proofs.mutation.whole_mutants import WHOLE_MUTANTS

HAND_MADE = (
    BOUND_MUTANTS + CHECK_MUTANTS + GUIDED_MUTANTS + WHOLE_MUTANTS + SOME_WHOLE_MUTANTS + CHAIN_MUTANTS + COOL_MUTANTS
)
