"""No-wait schedules: each micro-batch passes all stages and returns without a wait; only its start is open.

Where memory is scarce, an activation that waits takes room from another micro-batch, so that good schedules consist of
such chains, as the building blocks of Qi et al. (arXiv 2405.15362) do. Here the distances of starts need not be equal.

- `block.py` has the passes of one micro-batch by device, with their offsets from its start.
- `kernel.py` finds the next starts at which devices are free and memory suffices; W runs in the gaps.
- `search.py` is a beam search over the starts of all micro-batches.
"""
