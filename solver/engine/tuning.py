"""Tuning constants that several parts of the engine share; those of one part are the fields of its dataclass."""

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
# The first slice of a part, of the time limit; where work is counted, of that of a part, which has all of it in turn.
FIRST_SLICE, COUNTED_SLICE = 1 / 64, 1 / 8
# What a slice closed counts so much with the next one.
DISCOUNT = 0.5
# The share of the gap that a part is hoped to close in as much time as it had so far.
HOPE = 0.1
# A slice of a part that begins anew is longer by so much than all of its slices before.
LONGER = 3.0
