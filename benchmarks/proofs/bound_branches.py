"""The branches of every bound: the sentence of its certificates, and the kind of problem that exercises it."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.proofs.branch import OVER_MODES, Branch, Likely
from benchmarks.proofs.branch_conditions import (
    ROW,
    ROW_OF_SOME,
    never_split,
    one_stage,
    several_stages,
    with_freed,
)
from benchmarks.proofs.diagram_branches import DIAGRAM_BRANCHES
from solver.bounds.analytic.catalogue import BOUNDS

_SLOW = Likely(long_links=0.7, long_weights=0.7, tight=0.8, unlimited=0.05)
_TIGHT = Likely(tight=0.95, unlimited=0, long_links=0.5)
_LOOSE = Likely(tight=0.2, unlimited=0.4, long_links=0.5)
_MEMORY = Likely(
    long_links=0.7,
    long_weights=0.6,
    tight=0.8,
    blocks=0.02,
    whole_only=0,
    fewest=2,
    most=4,
    linear=0.7,
    short_whole=0.05,
)
_AMPLE = replace(_MEMORY, blocks=0.2, linear=0.2, fewest=1, most=3)
_BLOCKS = Likely(blocks=0.9, tight=0.3, unlimited=0.4, long_links=0.2, short_whole=0.3, most=3)
_PAIRED = Likely(blocks=1, tight=0.9, unlimited=0, whole_only=0.5, freed=("none", "all"), fewest=2, most=4, linear=0.6)
_SHORT = Likely(blocks=0, whole_only=0, short_whole=0.9, fewest=2, most=4, linear=0.5)
_AFTER = "that are held when its last forward ends"
_IDLES = "and idles"
_ORDERED = "head and tail in order"
_COOL, _BACK, _THERE = "cool-down", "the way back of the last", "for their backwards"
_ALONE, _ALL_THERE = replace(_TIGHT, blocks=0), replace(_AMPLE, blocks=0)
_IN_A_ROW, _LATER = "must lie between, one after the other", "in later waits for the pipeline's latency"

_DRAWN: tuple[Branch, ...] = (
    Branch("load, span", "load", "in all, one pass at a time.", likely=_LOOSE),
    Branch("load, makespan", "load", "cannot start before", likely=_LOOSE),
    Branch("round trip, forced apart", "round trip", "Memory forces a backward before", likely=_TIGHT),
    Branch("round trip, apart or longer", "round trip", "add up if a backward starts", likely=_LOOSE),
    Branch("round trip, together", "round trip", "the two may be one", likely=_LOOSE),
    Branch("round trip, several in a row", "round trip", _IN_A_ROW, likely=ROW),
    Branch("round trip, several in a row, blocks", "round trip", _IN_A_ROW, likely=replace(ROW, blocks=0.7)),
    Branch(
        "round trip, several in a row, several stages",
        "round trip",
        _IN_A_ROW,
        where=several_stages,
        likely=ROW_OF_SOME,
    ),
    Branch("integral warm-up, none waits", "integral warm-up", "an integral number", ("must wait",)),
    Branch(
        "integral warm-up, one waits",
        "integral warm-up",
        "must wait",
        likely=Likely(tight=0.7, most=4),
    ),
    Branch("head and tail, work", "head and tail", "may come after its last gradient", (_IDLES,), likely=_LOOSE),
    Branch(
        "head and tail, work and idle", "head and tail", "may come after its last gradient, and idles", likely=_TIGHT
    ),
    Branch("head and tail, work after the last forward", "head and tail", "can wait in memory", (_IDLES,)),
    Branch("head and tail, that and idle", "head and tail", "ends, and idles", likely=_TIGHT),
    Branch("head and tail, memory", "head and tail", "leaving out weight passes", likely=_TIGHT),
    Branch("head and tail, work, round trips in a row", "head and tail", _LATER, ("can wait in memory",), likely=ROW),
    Branch("head and tail, last forward, round trips in a row", "head and tail", _LATER, ("may come",), likely=ROW),
    Branch(
        "head and tail, round trips in a row, several stages",
        "head and tail",
        _LATER,
        where=several_stages,
        likely=ROW_OF_SOME,
    ),
    *(
        Branch(
            f"head and tail, memory after the last forward, {words} freed",
            "head and tail",
            _AFTER,
            where=with_freed(words),
            likely=replace(_MEMORY if words == "part" else _AMPLE, freed=(words,)),
        )
        for words in ("none", "part", "all")
    ),
    Branch(
        "head and tail, memory after the last forward, one backward",
        "head and tail",
        _AFTER,
        where=lambda problem, _: not problem.splittable,
        likely=replace(_AMPLE, whole_only=1),
    ),
    *(
        Branch(f"head and tail in order, {name}", _ORDERED, sentence, others, likely=likely, in_order=True)
        for name, sentence, others, likely in (
            ("work", "may come after its last gradient", (_IDLES,), replace(_LOOSE, blocks=0)),
            ("work and idle", "may come after its last gradient, and idles", (), replace(_TIGHT, blocks=0)),
            ("last forward", "its last forward ends", (), replace(_MEMORY, blocks=0)),
        )
    ),
    *(
        Branch(f"{_COOL}, {name}", _COOL, sentence, where=where, likely=likely)
        for name, sentence, where, likely in (
            ("way back", _BACK, one_stage, _ALL_THERE),
            ("way back, several stages", _BACK, several_stages, _ALL_THERE),
            ("way back, one backward", _BACK, never_split, replace(_ALL_THERE, whole_only=1)),
            ("work there", _THERE, one_stage, _ALONE),
            ("work there, several stages", _THERE, several_stages, _ALONE),
            ("work there, one backward", _THERE, never_split, replace(_ALONE, whole_only=1)),
        )
    ),
    Branch(
        "in-flight limit, room after W",
        "in-flight limit",
        where=with_freed("none", "less"),
        likely=Likely(long_links=0.7, tight=1, unlimited=0, freed=("none", "less"), whole_only=0),
    ),
    Branch(
        "in-flight limit, room after B or a second B",
        "in-flight limit",
        where=with_freed("part", "all"),
        likely=Likely(long_links=0.7, long_weights=0.5, tight=1, unlimited=0, freed=("part", "all"), whole_only=0),
    ),
    Branch(
        "in-flight limit, one backward",
        "in-flight limit",
        where=lambda problem, _: not problem.splittable,
        likely=Likely(long_links=0.7, tight=1, unlimited=0, whole_only=1),
    ),
    *(
        Branch(f"unpaired passes, {name}", "unpaired passes", sentence, others, likely=likely)
        for name, sentence, others, likely in (
            ("first backward", "outside of overlapped blocks", ("When its",), _BLOCKS),
            ("blocks and little memory", "at most", ("When its",), replace(_BLOCKS, tight=0.9, unlimited=0)),
            ("last gradient", "When its last gradient", (), _BLOCKS),
            ("last forward", "When its last forward", (), replace(_BLOCKS, tight=0.9, unlimited=0)),
            ("short full backward", "splits", ("overlapped", "When its"), _SHORT),
            ("short full backward, last gradient", "When its last gradient", ("overlapped",), _SHORT),
            ("short full backward, last forward", "When its last forward", ("overlapped",), _SHORT),
        )
    ),
    Branch("memory and modes, blocks", "memory and modes", "outside of overlapped blocks", likely=_PAIRED),
    Branch(
        "memory and modes, split or short full backward",
        "memory and modes",
        "many backwards are split",
        ("overlapped",),
        likely=replace(_SHORT, tight=1, unlimited=0, fewest=3, linear=0.8, freed=("none", "part", "all")),
    ),
    Branch("period, load", "period: load", likely=_LOOSE),
    Branch("period, in-flight limit", "period: in-flight limit", likely=Likely(long_links=0.7, tight=1, unlimited=0)),
    Branch("period, memory over time", "period: memory over time", likely=_SLOW),
    Branch(
        "period, memory over time, B takes more",
        "period: memory over time",
        where=with_freed("less"),
        likely=Likely(long_links=0.6, long_weights=0.6, tight=0.8, unlimited=0.05, freed=("less",), whole_only=0),
    ),
    Branch("period, over modes, blocks", OVER_MODES, where=lambda problem, _: problem.overlaps, likely=_PAIRED),
    Branch(
        "period, over modes, short full backward",
        OVER_MODES,
        where=lambda problem, _: not problem.overlaps,
        likely=_SHORT,
    ),
    *DIAGRAM_BRANCHES,
)

# A bound of one stream whose branches are not told apart is one branch.
BRANCHES: tuple[Branch, ...] = (
    *_DRAWN,
    *(
        Branch(bound.name, bound.name)
        for bound in BOUNDS
        if not bound.several_streams and bound.name not in {branch.kind for branch in _DRAWN}
    ),
)
