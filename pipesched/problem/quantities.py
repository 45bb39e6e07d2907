"""Names for the whole numbers of a problem.

The annotations say what an `int` counts, or which list it is an index in. All are aliases of `int` and change nothing
at run time. A count stays `int`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# A time or a duration, as a number of ticks of the problem (`Units.tick`).
Ticks: TypeAlias = int
# An amount of memory, as a number of steps of the problem's resolution (`Units.resolution`).
MemorySteps: TypeAlias = int
# Memory in use over time: steps of memory times ticks.
MemoryTicks: TypeAlias = int
# A device, from 0: an index in whatever has one entry for each device.
DeviceId: TypeAlias = int
# A stage, from 0 over all devices and chains: an index in whatever has one entry for each stage.
StageId: TypeAlias = int
# A chain: an index in `Placement.chains`.
ChainId: TypeAlias = int
# A micro-batch, from 0 over all chains; of a pass that a stage runs for its parameters a number from 0 in its place.
MicrobatchId: TypeAlias = int
# A memory: an index in `TaskNetwork.reservoirs`, where device d is number d and the hosts follow the devices.
ReservoirId: TypeAlias = int
# A task of a pass, counted from 0 along the pass: an index in the pass's entry of `TaskNetwork.tasks`.
TaskPart: TypeAlias = int

# Times or durations in ticks.
TickArray: TypeAlias = NDArray[np.int64]
# Amounts of memory in steps of the problem's resolution.
MemoryArray: TypeAlias = NDArray[np.int64]
