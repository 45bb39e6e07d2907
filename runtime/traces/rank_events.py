"""Launches and kernels of one process, from any recorder, and the annotation that each belongs to."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from runtime.traces.pipeline_trace import Block, RanPass

# torch's word for a pass, as its pipeline runtime annotates it: stage, kind, micro-batch.
_PASS = re.compile(r"PP:(\d+)([FIWB])(\d+)")
_KINDS = {"F": F, "I": B, "W": W, "B": BW}
# A block of a layer: its name, and of which pass it is.
_BLOCK = re.compile(r"(\w[\w .-]*)\(([FBW])\)")
# Kernels that wait for other ranks; what a block does follows the last of them.
_WAITS = re.compile("notify|barrier", re.IGNORECASE)


class Span(NamedTuple):
    """A named interval of time, from `start` to `end` in seconds."""

    name: str
    start: float
    end: float


class Kernel(NamedTuple):
    """A kernel on a stream of the GPU: its `start`, its `end`, and when the host `launched` it, all in seconds."""

    name: str
    start: float
    end: float
    stream: int
    launched: float


@dataclass(frozen=True)
class RankEvents:
    """The record that a profiler made of one rank, with times in seconds.

    `annotations` are named ranges, such as torch's of passes; `operations` are the operations of the host, in all
    threads; `memory` has (time, bytes taken, negative when freed), by time; `peak` is the most bytes allocated, None if
    not recorded. Annotations and operations are in the order of their starts, kernels in the order of their launches.
    """

    rank: int
    annotations: Sequence[Span]
    kernels: Sequence[Kernel] = ()
    operations: Sequence[Span] = ()
    memory: Sequence[tuple[float, int]] = ()
    peak: int | None = None

    def passes(self) -> list[RanPass]:
        """Return the passes of the rank, without the time in which they wait for their tensors.

        A pass with kernels lasts from the start of the first to the end of the last kernel launched in it. A pass on
        the host alone starts with its first operation, since waiting for a message is no operation. A pass that did
        nothing takes no time; it is at its start where kernels were recorded, else at its end. Such is torch's input
        backward of stage 0, which waits for a gradient and leaves the work to its W. If the rank has neither kernels
        nor operations, each pass is as long as its annotation.
        """
        launched = [span.launched for span in self.kernels]
        begun = [span.start for span in self.operations]
        times = [time for time, _ in self.memory]
        found = []
        for span in self.annotations:
            match = _PASS.fullmatch(span.name)
            if match is None:
                continue
            kernels = self.kernels[bisect_left(launched, span.start) : bisect_right(launched, span.end)]
            start, end = span.start, span.end
            if self.kernels:
                start, end = (min(k.start for k in kernels), max(k.end for k in kernels)) if kernels else (start, start)
            elif self.operations:
                first = bisect_left(begun, span.start)
                start = begun[first] if first < len(begun) and begun[first] <= span.end else end
            taken = self.memory[bisect_left(times, span.start) : bisect_right(times, span.end)]
            p = Pass(_KINDS[match[2]], int(match[1]), int(match[3]))
            found.append(RanPass(p, start, end, sum(size for _, size in taken) if self.memory else None))
        return found

    def blocks(self) -> Iterator[tuple[Span, str, PassKind, list[Kernel]]]:
        """Yield each annotated block: its interval, name, kind of pass, and the kernels launched in it.

        A kernel launched in nested blocks belongs to the innermost.
        """
        spans = [(one, found) for one in self.annotations if (found := _BLOCK.fullmatch(one.name)) is not None]
        kernels_of_span: list[list[Kernel]] = [[] for _ in spans]
        for kernel in self.kernels:
            inside = [at for at, (one, _) in enumerate(spans) if one.start <= kernel.launched <= one.end]
            if inside:
                kernels_of_span[min(inside, key=lambda at: spans[at][0].end - spans[at][0].start)].append(kernel)
        for (one, found), own in zip(spans, kernels_of_span, strict=True):
            yield one, found[1], _KINDS["I" if found[2] == "B" else found[2]], own


def has_passes(events: RankEvents) -> bool:
    """Return True if some annotation is one that torch's pipeline runtime makes for a pass."""
    return any(_PASS.fullmatch(one.name) for one in events.annotations)


def blocks_of(events: RankEvents) -> list[Block]:
    """Return every block that has kernels of its own, with its seconds, from its first kernel to its last.

    Kernels that wait for other ranks do not count, nor do the kernels before them; a block without any other is left
    out. Blocks of one name and kind are on the stream that works most for them. The busiest of these streams is
    `compute`, a single other one `comm`; several others keep their numbers, as `stream7`. A number at the end of a
    block's name counts the layers: up in forwards, down in B and W.
    """
    found = [(name, kind, own) for _, name, kind, own in events.blocks() if own]
    alike: dict[tuple[str, PassKind], list[list[Kernel]]] = {}
    for name, kind, own in found:
        alike.setdefault((name, kind), []).append(own)
    main = {key: _main_stream([kernel for own in every for kernel in own]) for key, every in alike.items()}
    named = _names({stream: _work(events.kernels, stream) for stream in main.values()})
    count: dict[tuple[str, PassKind], int] = {}
    blocks = []
    for name, kind, own in found:
        place = count.get((name, kind), 0)
        count[name, kind] = place + 1
        layer = place if kind is F else len(alike[name, kind]) - 1 - place
        waited = max((k.end for k in own if _WAITS.search(k.name)), default=float("-inf"))
        work = [k for k in own if not _WAITS.search(k.name) and k.start >= waited]
        if work:
            seconds = max(k.end for k in work) - min(k.start for k in work)
            full = f"{name}{'-w' if kind is W else ''}-{layer}"
            blocks.append(Block(kind, full, named[main[name, kind]], seconds))
    return blocks


def _main_stream(kernels: Sequence[Kernel]) -> int:
    return max({k.stream for k in kernels}, key=lambda stream: _work(kernels, stream))


def _names(work: dict[int, float]) -> dict[int, str]:
    """Return names of streams by number, given their seconds of work; empty for no streams.

    The busiest is `compute`. A single other one is `comm`, of several each has its number, as `stream7`.
    """
    if not work:
        return {}
    first, *others = sorted(work, key=lambda stream: -work[stream])
    return {first: "compute"} | {one: "comm" if len(others) == 1 else f"stream{one}" for one in others}


def _work(kernels: Sequence[Kernel], stream: int) -> float:
    return sum(k.end - k.start for k in kernels if k.stream == stream)
