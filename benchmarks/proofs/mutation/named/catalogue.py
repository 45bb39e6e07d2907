"""All named mutants."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.diagrams import DIAGRAMS
from benchmarks.proofs.mutation.named.plans import PLANS
from benchmarks.proofs.mutation.named.reservoirs import RESERVOIRS
from benchmarks.proofs.mutation.named.resources import RESOURCES
from benchmarks.proofs.mutation.named.schedules import SCHEDULES

MUTANTS = (*DIAGRAMS, *PLANS, *RESERVOIRS, *RESOURCES, *SCHEDULES)
