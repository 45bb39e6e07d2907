"""Mistakes made by hand in the cool-down bound and in its check: each claims, or accepts, more than holds.

Attacks made by hand know the other bounds only, so that these are held to the tests of their files.
"""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import HandMade, of_file

COOL_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "solver/bounds/analytic/cool_down.py",
        ("blocks count as passes", "if problem.overlaps:", "if False:", ()),
        ("weight passes take no memory from others", "room - first * held", "room - 2 * first * held", ()),
        (
            "gradients that have passed the last stage arrive later",
            "(arrives(first, back.before)",
            "(arrives(last, back.before)",
            (),
        ),
        (
            "gradients wait for each other on the whole way",
            "of_all = left.first * gradient[first]",
            "of_all = left.first * paths.rest[first]",
            (),
        ),
        (
            "only one micro-batch is left at the last stage",
            "else first, first + 1)",
            "else first, min(2, first + 1))",
            (),
        ),
        ("idle time twice", "values = back.head + busy.work + idle", "values = back.head + busy.work + 2 * idle", ()),
        ("idle time before the last forward in any case", "(busy.idle if busy.apart else 0)", "busy.idle", ()),
        ("all work is on the way back", "np.maximum(way, work)\n", "(way + work)\n", ()),
    ),
    *of_file(
        "pipesched/checking/cool_down.py",
        ("blocks count as passes", "if here.blocks:", "if False:", ()),
        ("two chains count as one", "if len(here.chains) != 1:", "if False:", ()),
        ("any device may be the other one", "if not self.sooner:", "if False:", ()),
        ("idle time before the last forward in any case", "if here.backward_before_last_forward else 0", "", ()),
        ("the most over all numbers", "until_then + min(after)", "until_then + max(after)", ()),
        ("what is left takes no memory", "here.room - taken", "here.room - taken - 1", ()),
        (
            "what the other device runs waits for the way back",
            "max(self._returning(early, late), self._running(early, late))",
            "self._returning(early, late) + self._running(early, late)",
            (),
        ),
    ),
)
