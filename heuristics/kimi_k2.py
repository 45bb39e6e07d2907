"""Kimi K2's pipeline: interleaved 1F1B with one more warm-up forward, overlapped pairs, and separate weight gradients.

The additional forward lets each steady forward and backward belong to different micro-batches, so that the
expert-parallel all-to-all of one is hidden by the other. Weight gradients are separated from the backward to run while
its gradient travels: inside a block the block's duration includes that; in the cool-down B and W are separate passes.

Where passes are several tasks, forward and backward of a pair interleave task by task (attention and experts of one
during dispatch and combine of the other), and the weight tasks run last, during the transfers of the pipeline.

`kimi-k2-offload` also moves activations to the host: during each slot the activation of the previous forward is copied
out, and that of the next backward is copied back.
"""

from __future__ import annotations

from functools import partial

from heuristics.catalogue import HEURISTICS, Heuristic, Priorities
from heuristics.overlapped_1f1b import overlapped_closed_form, overlapped_interleaved

HEURISTICS.register(
    Heuristic(
        name="kimi-k2",
        reference="Kimi Team, Kimi K2, arXiv 2507.20534, training infrastructure",
        needs="interleaved placement, any number of chunks v",
        bubble="(p-1)(F+B) + W with F, B, W of one chunk, and (p(v-1)+1)(F+BW - F&BW) not overlapped, "
        "if F&BW >= F, B+2W and BW = B+W, p > 1 and p divides m",
        peak="2(p-1-d) + (v-1)p + 2 chunk activations on device d (p divides m)",
        order=partial(overlapped_interleaved, name="kimi-k2", cut_weights=True),
        closed_form=partial(overlapped_closed_form, cut_weights=True),
    )
)
HEURISTICS.register(
    Heuristic(
        name="kimi-k2-offload",
        reference="Kimi Team, Kimi K2, arXiv 2507.20534, training infrastructure, with activation offloading",
        needs="memory.offload on every stage; interleaved placement",
        bubble="no formula: that of kimi-k2 where copies take no longer than what they run beside",
        peak="at most 4 chunk activations a device",
        order=partial(overlapped_interleaved, name="kimi-k2-offload", cut_weights=True, offload=True),
        priorities=Priorities(promising=True),
    )
)
