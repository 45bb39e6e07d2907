"""Names for the whole numbers of models of jobs: aliases of `int`, like those of `pipesched/problem/quantities.py`."""

from __future__ import annotations

from typing import TypeAlias

# A job: an index in `Jobs.jobs`.
JobId: TypeAlias = int
# A mode to choose: an index in `Jobs.choices`.
ChoiceId: TypeAlias = int
# A memory with a limit: an index in `Jobs.room` and `Jobs.pools`. The reservoirs of the network come first.
PoolId: TypeAlias = int
# A time or a duration, as a number of steps of a CP-SAT model; its attribute `scale` is the number of steps in a tick.
TimeSteps: TypeAlias = int
