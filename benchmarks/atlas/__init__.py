"""The atlas: the best published schedule and the optimum over devices, micro-batches, memory, times and transfers."""
