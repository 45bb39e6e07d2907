"""An explanation as a JSON object."""

from __future__ import annotations

from pipesched.results.analysis.bottleneck import bottleneck_sentences
from pipesched.results.analysis.explanation import BoundAndValue, Effect, Explanation
from pipesched.results.analysis.explanation_text import advice


def explanation_document(it: Explanation) -> dict[str, object]:
    """Return the object under `explanation` of `solve --json`; values are floats in the file's unit.

    `binds` are the causes, `device` the one of the strongest bound, `story` the sentences. `certificates` has the
    proved bound and those near the strongest; `bound_without_memory` and `bound_without_transfers` are the strongest
    ones of relaxed problems; `busiest_device`, `work`. `as_it_is` is the result for the unchanged problem,
    `as_it_is_in_short` that of a search as short as each change's, None if there was none. `changes` are the effects of
    those tried, the one that gains most first, `not_tried` the texts of the others. `interrupted`: the user stopped the
    search.
    """
    bottleneck = it.bottleneck
    problem = bottleneck.problem
    further = [bottleneck.proved] if bottleneck.proved is not bottleneck.strongest else []
    certificates = [*further, bottleneck.strongest, *bottleneck.close]
    return {
        "binds": bottleneck.main_causes,
        "device": bottleneck.device,
        "story": [*advice(it), *bottleneck_sentences(bottleneck)],
        "certificates": [
            {"kind": c.kind, "device": c.device, "value": problem.in_units(c.value_ticks), "text": c.text}
            for c in certificates
        ],
        "bound_without_memory": problem.in_units(bottleneck.without_memory),
        "bound_without_transfers": problem.in_units(bottleneck.without_transfers),
        "busiest_device": bottleneck.busiest,
        "work": problem.in_units(bottleneck.work),
        "as_it_is": _outcome(it.unchanged),
        "as_it_is_in_short": None if it.again is None else _outcome(it.again),
        "changes": [_effect(it, effect) for effect in it.ranked()],
        "not_tried": [change.text for change in it.untried],
        "interrupted": it.interrupted,
    }


def _outcome(outcome: BoundAndValue) -> dict[str, float | None]:
    return {
        "lower_bound": float(outcome.lower_bound),
        "value": None if outcome.value is None else float(outcome.value),
    }


def _effect(it: Explanation, effect: Effect) -> dict[str, object]:
    change, gain = effect.change, it.gain(effect)
    document: dict[str, object] = {
        "kind": change.kind,
        "text": change.text,
        "device": change.device,
        **_outcome(effect.outcome),
        "gain_at_least": None if gain is None else float(gain[0]),
        "gain_at_most": None if gain is None else float(gain[1]),
    }
    return document | ({"reason": effect.reason} if effect.reason else {})
