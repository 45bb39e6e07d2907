"""Memory of keys and values: a piece of a sequence keeps them on its stage for the later pieces of its micro-batch."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import MemorySteps


class KvCache(NamedTuple):
    """Memory of a stage's keys and values, in steps, in addition to the activation.

    F takes `taken` when it starts. Its own backward does not free it: the backward of another stage of the device does
    when it ends, whose `released` includes it.
    """

    taken: MemorySteps = 0
    released: MemorySteps = 0


# A stage whose passes leave nothing for others.
NO_KV_CACHE = KvCache()
