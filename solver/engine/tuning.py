"""Tuning constants that several phases of the engine share; those of one phase are the fields of its dataclass."""

from __future__ import annotations

# Of so many passes each schedule takes a part of a second, so that schedules of fewer micro-batches are extended where
# they will do, and no schedule is tried any more once the optimum is proved.
MANY_PASSES = 20_000
# Seconds that the first schedule of all may take although the time limit is shorter.
GRACE = 1.0
# About the seconds that stating the exact model takes for each pass.
STATING_SECONDS_A_PASS = 0.001
# About the seconds that local search takes for each pass before its first move counts.
LOCAL_SEARCH_SECONDS_A_PASS = 1e-4
# How many schedules besides the best one local search starts from.
OTHER_STARTS = 6
# Up to so many order literals CP-SAT refutes more by an exhaustive search than relaxed decision diagrams do.
REFUTABLE_LITERALS = 6_000
