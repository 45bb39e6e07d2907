"""The branches of the bounds by decision diagrams: of steps, of steps below a value, and with blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.proofs.branch import Branch
from benchmarks.proofs.branch_conditions import ROW_OF_SOME, several_stages
from benchmarks.proofs.further_bounds import (
    Further,
    all_orders,
    diagrams_by_device,
    diagrams_by_threshold,
    diagrams_of_more_stages,
    diagrams_of_stages,
    without_blocks,
)
from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import blocks_outlast_passes

# What must hold of a problem and the device of a certificate.
Where = Callable[[Problem, int], bool]
# By name: what is likely of the problems drawn, and what must hold of them.
Cases = dict[str, tuple[dict[str, Any], Where]]

_STEPS: Cases = {
    "room after W": ({"freed": ("none", "less"), "whole_only": 0}, several_stages),
    "room after B": ({"freed": ("part", "all"), "whole_only": 0}, several_stages),
    "one backward": ({"whole_only": 1}, several_stages),
    "short full backward": ({"short_whole": 1, "whole_only": 0}, several_stages),
    "V": ({}, lambda problem, _: problem.placement.name == "v-shape"),
    "interleaved": ({}, lambda problem, _: problem.placement.name == "interleaved"),
    "span": ({}, lambda problem, _: problem.objective.by_device),
    "makespan": ({}, lambda problem, _: problem.objective.from_zero),
    "links": ({"long_links": 1}, lambda problem, _: bool(problem.links)),
    "one stage a device": ({"linear": 0.6}, lambda problem, device: not several_stages(problem, device)),
    "two directions": ({}, lambda problem, _: len(problem.placement.chains) > 1),
    "many zeros": ({"zeros": 0.4, "linear": 0.2}, lambda *_: True),
}


def _outlast(also: Where = lambda *_: True) -> Where:
    """Where every block takes longer than its passes alone: so no pass alone counts as if it were in a block."""
    return lambda problem, device: blocks_outlast_passes(problem) and also(problem, device)


_WITH_BLOCKS: Cases = {
    **{
        name: (_STEPS[name][0], _outlast(_STEPS[name][1]))
        for name in ("room after W", "room after B", "short full backward", "two directions", "many zeros")
    },
    **{
        name: ({"tight": 0.6, **more}, _outlast(_STEPS[name][1]))
        for name, more in (
            ("V", {}),
            ("interleaved", {}),
            ("one stage a device", {"linear": 0.8}),
            ("span", {"linear": 0.5}),
            ("makespan", {"linear": 0.5}),
        )
    },
    "split backwards": ({"tight": 0.6, "whole_only": 0}, _outlast()),
    "one backward": ({"tight": 0.6, "whole_only": 1}, _outlast()),
    "shorter than a pass": ({"linear": 0.5}, lambda problem, _: not blocks_outlast_passes(problem)),
}
_THRESHOLDS_WITH_BLOCKS = (
    *("room after B", "one stage a device", "span", "makespan"),
    *("split backwards", "one backward", "shorter than a pass", "many zeros"),
)
_THRESHOLDS = (
    *("room after W", "room after B", "one backward", "short full backward"),
    *("V", "interleaved", "span", "makespan", "many zeros"),
)
_STAGES_WITH_BLOCKS = ("room after B", "V", "split backwards", "shorter than a pass")

# Two directions on the same devices.
_CHAINS: Cases = {
    **{name: _STEPS[name] for name in ("room after W", "room after B", "one backward", "short full backward", "links")},
    **{name: _STEPS[name] for name in ("span", "makespan")},
    "many zeros": ({"zeros": 0.4}, lambda *_: True),
    "blocks": ({"blocks": 1}, lambda problem, _: problem.overlaps),
    "blocks, span": ({"blocks": 1}, lambda problem, _: problem.overlaps and problem.objective.by_device),
    "blocks, split backwards": ({"blocks": 1, "whole_only": 0}, lambda problem, _: problem.overlaps),
    "blocks, room after B": (
        {"blocks": 1, "whole_only": 0, "freed": ("part", "all")},
        lambda problem, _: problem.overlaps,
    ),
    "blocks, shorter than a pass": ({"blocks": 1}, lambda problem, _: not blocks_outlast_passes(problem)),
    "blocks, many zeros": ({"blocks": 1, "zeros": 0.4}, lambda problem, _: problem.overlaps),
}


def _several_chains(cases: Cases) -> Cases:
    """The same cases, where several chains share the devices."""

    def within(also: Where) -> Where:
        def holds(problem: Problem, device: int) -> bool:
            return len(problem.placement.chains) > 1 and also(problem, device)

        return holds

    return {name: (likely, within(where)) for name, (likely, where) in cases.items()}


def _branches(kind: str, further: Further, cases: Cases, group: str = "", **likely: Any) -> Iterator[Branch]:
    """One for each case of a kind of bound: drawn as is `likely` for all of them, but for what the case itself says."""
    for name, (own, where) in cases.items():
        drawn = replace(ROW_OF_SOME, **{**likely, **own})
        yield Branch(f"{kind}, {group}{name}", kind, where=where, likely=drawn, further=further)


def _of(cases: Cases, names: Iterable[str]) -> Cases:
    return {name: cases[name] for name in names}


_BLOCKS: dict[str, Any] = {"blocks": 1, "whole_only": 0.3}
_SOME, _BY_THRESHOLD = "decision diagram of some devices", "decision diagram below a value"
_OF_SOME_STAGES, _OF_MORE_STAGES = "decision diagram of some stages", "decision diagram guided by fewer stages"
_BY_DEVICE, _ALL_CHAINS = "decision diagram guided by each device", "decision diagram of all chains"
_BLOCKS_TOO = "decision diagram with blocks"
_BLOCK_CASES = _of(_WITH_BLOCKS, _STAGES_WITH_BLOCKS)

DIAGRAM_BRANCHES: tuple[Branch, ...] = (
    *_branches(_SOME, all_orders(64), _STEPS, whole_only=0.3),
    Branch(f"{_SOME}, merged", _SOME, likely=ROW_OF_SOME, further=all_orders(1, 2)),
    *_branches(_BY_THRESHOLD, diagrams_by_threshold, _of(_STEPS, _THRESHOLDS), whole_only=0.3),
    *_branches(_BY_THRESHOLD, diagrams_by_threshold, _of(_WITH_BLOCKS, _THRESHOLDS_WITH_BLOCKS), "blocks, ", **_BLOCKS),
    *_branches(_OF_SOME_STAGES, diagrams_of_stages, _STEPS, whole_only=0.3),
    *_branches(_OF_SOME_STAGES, diagrams_of_stages, _BLOCK_CASES, "blocks, ", **_BLOCKS),
    *_branches(_OF_MORE_STAGES, without_blocks(diagrams_of_more_stages), _STEPS, whole_only=0.3),
    *_branches(_OF_MORE_STAGES, diagrams_of_more_stages, _BLOCK_CASES, "blocks, ", **_BLOCKS),
    *_branches(_BY_DEVICE, without_blocks(diagrams_by_device), _STEPS, whole_only=0.3),
    *_branches(_BY_DEVICE, diagrams_by_device, _BLOCK_CASES, "blocks, ", **_BLOCKS),
    *_branches(_ALL_CHAINS, diagrams_by_device, _several_chains(_CHAINS), whole_only=0.3, bidirectional=0.9),
    *_branches(_BLOCKS_TOO, all_orders(1, 64, blocks=True), _WITH_BLOCKS, **_BLOCKS),
)
