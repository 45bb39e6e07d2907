"""`solve --from-state` on a tiny problem file: what remains of an iteration that a known schedule began."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from benchmarks.matrix.draw import text_of
from benchmarks.matrix.states import state_document
from benchmarks.proofs.options.by_hand import value_of_schedule
from benchmarks.proofs.options.claim import exact, number
from benchmarks.proofs.options.drawn import Asked, NotComparedError, answer_of
from commands.shared.catalogue import Exit
from pipesched.files.schedule_file import read_schedule
from pipesched.schedule.metrics import measure

_SMALL = Fraction(1, 10**7)


def from_state(asked: Asked) -> Sequence[str]:
    """`solve --from-state -o`: what has begun stays, what remains begins no sooner.

    No continuation is better than the optimum of the file, and the schedule that was interrupted is one of them.
    """
    out = asked.folder / "before"
    before = asked.answer("solve", "-o", str(out))
    if not (out / "schedule.json").exists():
        raise NotComparedError("no schedule to interrupt")
    timeline = read_schedule(out / "schedule.json").timeline
    now = asked.random.randint(0, measure(timeline).makespan_ticks)
    state = asked.folder / "now.state.json"
    state.write_text(text_of(state_document(timeline, now)), encoding="utf-8")
    after = asked.folder / "after"
    answer = asked.answer("solve", "--from-state", str(state), "-o", str(after))
    _keeps_what_has_begun(json.loads(state.read_text(encoding="utf-8"), parse_float=Decimal), answer)
    was, value, bound = number(before["value"]), number(answer["value"]), number(answer["lower_bound"])
    assert was is not None and answer["status"] != "infeasible", "infeasible, where a schedule goes on"
    assert answer["code"] == Exit.DONE and value is not None, f"exit code {answer['code']}, where a schedule goes on"
    assert bound is not None and bound <= was * (1 + _SMALL), f"bound {bound} above the schedule's {was}"
    assert answer["status"] != "optimal" or value <= was * (1 + _SMALL), f"optimal at {value}, the schedule takes {was}"
    seen = ["from a state"]
    if (after / "schedule.json").exists():
        assert answer_of("validate", str(after / "schedule.json"), "--json")["code"] == 0, "an order that is not valid"
        by_hand = value_of_schedule(after / "schedule.json")
        if by_hand is not None:
            assert by_hand <= value * (1 + _SMALL), f"value {float(value)}, by hand {float(by_hand)}"
            seen.append("by hand")
    best = exact(asked.plain)
    if best is not None and best.least is not None:
        assert value >= best.least * (1 - _SMALL), f"{value} below the optimum {float(best.least)}"
        seen.append("compared")
    return seen


def _keeps_what_has_begun(state: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    begun = {row["name"]: row for row in state["passes"]}
    now, close = float(Fraction(str(state["now"]))), 1e-6
    rows = [row for order in answer["orders"] for row in order]
    fixed = {row["name"]: row for row in rows if row["fixed"]}
    assert fixed.keys() == begun.keys(), f"begun are {sorted(fixed.keys() ^ begun.keys())} in one of the two alone"
    for name, row in fixed.items():
        for key in ("start", "end"):
            own = begun[name].get(key)
            assert own is None or abs(float(Fraction(str(own))) - row[key]) <= close, f"{name} was moved"
    early = [row["name"] for row in rows if not row["fixed"] and row["start"] < now - close]
    assert not early, f"{early[0]} begins before now"


OPTIONS: Mapping[str, Callable[[Asked], Sequence[str]]] = {"solve --from-state": from_state}
