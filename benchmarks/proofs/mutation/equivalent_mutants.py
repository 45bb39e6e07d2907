"""Mutants that change nothing, each with the reason; benchmarks/proofs/mutants.py does not run them.

They are named by function and expression. One whose code has become another is looked at anew where it survives.
"""

from __future__ import annotations

from collections.abc import Mapping

_ANY_MICRO_BATCH = "The number of a micro-batch in a pass whose duration is asked for: all of a stage are alike."
_EQUAL = "Where the two are equal every unit counts alike."
_AS_LONG = "The columns zipped are of one table and so equally long."
_NO_SUCH_TASK = "The tasks of a pass that are gone through at least: where no pass has so many, nothing is added."

_EVERY_BLOCK = "A block's duration depends on its forward alone, so far."
_NOT_USED = "Where there are no blocks or no splits none are counted, and what one would take counts nowhere."
_EFFORT = "A limit of effort, not of what holds: nothing is said of one pair of numbers more."
_ONE_STAGE = "With one stage the fewer gradients of its last stage prove no less: all of its gradients count anyway."
_NEVER = "Any negative number stands for a row that is never possible."

# By file and by the mutant's name.
EQUIVALENT: Mapping[str, Mapping[str, str]] = {
    "solver/diagram/steps.py": {
        "_blocks: 2 -> 3": "Columns beyond those of the steps are not looked at.",
        "_blocks: 0 -> 1 #2": _ANY_MICRO_BATCH,
    },
    "solver/bounds/analytic/idle_time/memory_energy.py": {
        "held_at_last_forward: longest > waiting -> longest >= waiting": _EQUAL,
        "area: 0 -> 1": _ANY_MICRO_BATCH,
        "_left_for_weight: 0 -> 1 #3": _ANY_MICRO_BATCH,
    },
    "solver/bounds/analytic/catalogue.py": {"Bound: 9 -> 10": "A rank behind all that bounds name, either way."},
    "solver/bounds/analytic/idle_time/busy_interval.py": {"BusyIntervals._weights: 0 -> 1": _ANY_MICRO_BATCH},
    "solver/bounds/analytic/critical_paths.py": {
        **{f"Paths.__init__: 0 -> 1{number}": _ANY_MICRO_BATCH for number in ("", " #2", " #3")},
        **{f"Paths._saving: 0 -> 1{number}": _ANY_MICRO_BATCH for number in ("", " #2", " #4", " #5")},
        **{f"blocks_outlast_passes: 0 -> 1{number}": _ANY_MICRO_BATCH for number in ("", " #2")},
        **{f"Paths.__init__: True -> False{number}": _AS_LONG for number in ("", " #2")},
    },
    "solver/bounds/analytic/idle_time/idle_gaps.py": dict.fromkeys(
        ("head_gap: 0 -> 1 #2", "between: 0 -> 1 #6", "_pending: 0 -> 1"), _ANY_MICRO_BATCH
    ),
    "solver/bounds/analytic/head_and_tail.py": {"head_and_tail: True -> False": _AS_LONG},
    "solver/bounds/analytic/cool_down.py": {
        ": 2000 -> 2001": _EFFORT,
        ": 7 -> 8": "A rank behind those of bounds of one stream, either way.",
        "_left: len(stages) > 1 -> len(stages) >= 1": _ONE_STAGE,
        "_left: True -> False": _AS_LONG,
        "_most_left: 0 -> 1 #4": _ANY_MICRO_BATCH,
    },
    "pipesched/checking/cool_down.py": {
        ": 2000 -> 2001": _EFFORT,
        "_left: 0 -> 1": _EFFORT,
        "_left: 1 -> 2 #7": _EFFORT,
        "_left: numbers > _MOST_NUMBERS -> numbers >= _MOST_NUMBERS": _EFFORT,
        "cool_down: True -> False": "Asked where memory does not hold all forwards: it leaves one out already, unless "
        "it is filled by parts of forwards of three kinds.",
        "_left: len(stages) > 1 -> len(stages) >= 1": _ONE_STAGE,
        "_Other._running: True -> False #2": _AS_LONG,
    },
    "solver/bounds/analytic/heads_and_tails.py": {
        f"heads_and_tails: True -> False{number}": _AS_LONG for number in ("", " #2")
    },
    "solver/bounds/analytic/round_trip.py": {
        "round_trip: 1 -> 2": "What is asked of `spare` is only whether any forward is known to run later.",
    },
    "solver/bounds/analytic/integral_warmup.py": {
        "_Heads.least_values: low + 2 * (high - low) -> low - 2 * (high - low)": "Another way up to a value that can "
        "be kept to: none below `low` can, and the least one is then found by halving.",
        "_sums: 0 -> 1 #3": _ANY_MICRO_BATCH,
    },
    "solver/bounds/analytic/modes/counts.py": {
        "Durations.__init__.ticks: 0 -> 1": _ANY_MICRO_BATCH,
        **{f"Durations.__init__: 0 -> 1{number}": _ANY_MICRO_BATCH for number in ("", " #2", " #3", " #4")},
        **{f"modes_count: 0 -> 1{number}": _ANY_MICRO_BATCH for number in ("", " #2", " #3")},
        "Durations.__init__: min((one for one in of_forward if one is not None), default=None) -> "
        "max((one for one in of_forward if one is not None), default=None)": _EVERY_BLOCK,
        "ModeCounts._work: one.b is not None and one.w is not None -> one.b is not None or one.w is not None": "Either "
        "both are told or neither is.",
        "compact: np.abs(values).max(initial=0) > _LONGEST -> np.abs(values).max(initial=0) >= _LONGEST": "A sum of "
        "just that much is exact in both kinds of integers.",
        "ModeCounts._work: 0 -> 1": _NOT_USED,
        "ModeCounts._work: 1 -> 2": _NOT_USED,
    },
    "solver/bounds/analytic/modes/delays.py": {
        "_less_if_split: ticks.b is None or ticks.w is None -> ticks.b is None and ticks.w is None": _NOT_USED,
        "Delays.__init__: 0 -> 1": _NOT_USED,
        "Delays.__init__: 0 -> 1 #2": _NOT_USED,
        "_less_if_split: 0 -> 1": _NOT_USED,
        "most_split: 1 -> 2 #5": _NEVER,
    },
    "solver/bounds/analytic/modes/memory.py": {
        "Holder.__init__: True -> False": _AS_LONG,
        "Holder.__init__: 0 -> 1 #2": "Every device that one of several walked chains visits, all of them visit.",
    },
    "solver/bounds/analytic/modes/values.py": {
        **{f"ModeValues._by_ends: True -> False{number}": _AS_LONG for number in ("", " #2")},
        "ModeValues.least: 1 -> 2": _NEVER,
    },
    "pipesched/checking/check.py": {
        "_proved: 0 -> 1 #2": "What is proved is compared with a value of 0 or less alone.",
    },
    "solver/bounds/analytic/stream_chains.py": {
        ": 60 -> 61": "Sums of two such times still fit.",
        "StreamChains.__init__: all((before.kind in (F, B, W, BW) for before in arc.alternatives)) -> any((before.kind "
        "in (F, B, W, BW) for before in arc.alternatives))": "Of what an arc may wait for all are copies and "
        "recomputations, or none.",
    },
    "solver/bounds/analytic/stream_memory.py": {
        "_Gifts.__init__: 1 -> 2": "Any negative number stands for a time before all others.",
        "_Tasks.__init__: 0 -> 1": "A task more that takes no time.",
        "_strongest: len(levels) > _TAILS -> len(levels) >= _TAILS": "Of so many levels as are tried each is chosen.",
    },
    "solver/bounds/analytic/stream_weights.py": {
        "_Stream._between: min((self._after(self._tails[end], tail) for end in self._ends[stage])) -> "
        "max((self._after(self._tails[end], tail) for end in self._ends[stage]))": "The tasks of a backward run one "
        "after the other, so that there is one end.",
        "_Stream.strongest: found.value > known -> found.value >= known": "Of two that prove as much the other one.",
    },
    "pipesched/checking/streams/weights.py": {"stream_weights: True -> False #2": _AS_LONG},
    "pipesched/checking/streams/task_paths.py": {
        "TaskPaths.__init__: 0 -> 1 #2": "How long after nothing: what waits for no task is left out.",
    },
    "pipesched/checking/unpaired.py": {"ModeNumbers.arguments: True -> False #3": _AS_LONG},
    "pipesched/checking/one_device.py": {"most_in: 0 -> 1 #10": "How many there are of an item of no value."},
    "pipesched/checking/memory_over_time.py": {
        "_pace: 0 -> 1": "Where no stage holds anything nothing is needed either; half the square of the room is then "
        "less than the square of it, so that nothing counts as lost at any pace.",
    },
    "solver/cyclic/replication.py": {
        "_rows: columns.slot[rows] + rounds * (end - begin) -> columns.slot[rows] - rounds * (end - begin)": "Slots "
        "are numbered anew: what counts is where one ends, and there the next has another number either way.",
    },
    "pipesched/validation/order_rules.py": {
        "placement: 1 -> 2": "Any negative number stands for a device that is none, and only devices are compared.",
    },
    "pipesched/validation/pass_rules.py": {
        "for_microbatches: 2 -> 3 #2": "How many of the numbers are added up at most: more only widens the integers.",
    },
    "pipesched/validation/memory_rule.py": {
        "_dropped: again >= 0 -> again > 0": "Row 0 has nothing before it: a recomputation there is before its "
        "forward, which precedence reports.",
    },
    "pipesched/validation/time_rules.py": {
        "streams: 1 -> 2 #3": _NO_SUCH_TASK,
        "streams: True -> False": _AS_LONG,
        "times: True -> False": _AS_LONG,
        "times: True -> False #2": _AS_LONG,
    },
}
