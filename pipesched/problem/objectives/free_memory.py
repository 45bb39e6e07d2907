"""The objectives of free memory: the most that every device has left at its peak, and then the least time."""

from pipesched.problem.objective import OBJECTIVES, Leaves, Objective

FREE_MEMORY = OBJECTIVES.register(Objective(Leaves.PER_DEVICE.value, place=4, leaves=Leaves.PER_DEVICE))
FREE_MEMORY_PER_LAYER = OBJECTIVES.register(Objective(Leaves.PER_LAYER.value, place=5, leaves=Leaves.PER_LAYER))
