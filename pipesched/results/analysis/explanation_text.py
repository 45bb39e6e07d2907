"""An explanation as text: recommended changes, rows of the table, and the proved gain of each change."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from pipesched.problem.quantities import DeviceId
from pipesched.results.analysis.explanation import Effect, Explanation, PerturbationKind

INCONCLUSIVE = "inconclusive"


def advice(it: Explanation) -> list[str]:
    """Return the recommended change, and the next one, as one text in a list.

    If none is known to help, the text says so; the list is empty if no change was tried.
    """
    gains: list[tuple[str, bool]] = []
    for what, effect in grouped(it):
        least, most = it.gain(effect) or (0, 0)
        if it.is_conclusive(effect) and most > 0:
            gains.append((f"{what} (the best possible value falls by {gain_text(it, effect)})", least > 0))
    if not gains:
        return ["No change that was tried is known to help."] if it.effects else []
    (first, certain), *others = gains
    opening = "What helps most" if certain else "No change is proved to help; what may help most"
    following = [f" Next: {others[0][0]}."] if others else []
    return ["".join([f"{opening}: {first}.", *following])]


def footnotes(it: Explanation) -> list[str]:
    """Return the sentences on limits of the table, if there are any.

    One gives the gap of the unchanged problem if that is above 0, one the meaning of `INCONCLUSIVE` if an effect is.
    """
    now = it.unchanged
    notes = []
    if now.value and now.value > now.lower_bound:
        share = 100 * float(1 - now.lower_bound / now.value)
        little = f"{ceil(share)} %"
        notes.append(
            f"The unchanged problem already has a gap of {share:.2f} %, so 'at most {little}' says almost nothing."
        )
    if any(gain_text(it, effect) == INCONCLUSIVE for effect in it.effects):
        notes.append(f"{INCONCLUSIVE}: as short a search leaves as much open without the change.")
    return notes


def grouped(it: Explanation) -> list[tuple[str, Effect]]:
    """Return pairs (text of a change, its effect), the best gain first.

    Changes of memory on several devices, one more activation each, share a pair if their effects are equal: that of the
    first one.
    """
    together: dict[tuple[object, ...], list[Effect]] = {}
    for effect in it.ranked():
        alone = effect.change.kind is not PerturbationKind.MEMORY or effect.change.device is None
        key = (effect.change.text,) if alone else (effect.outcome, effect.reason)
        together.setdefault(key, []).append(effect)
    return [(_text(effects), effects[0]) for effects in together.values()]


def _text(effects: Sequence[Effect]) -> str:
    devices = sorted(
        e.change.device for e in effects if e.change.kind is PerturbationKind.MEMORY and e.change.device is not None
    )
    return f"one more activation on {_listed(devices)}" if devices else effects[0].change.text


def _listed(devices: Sequence[DeviceId]) -> str:
    if len(devices) == 1:
        return f"device {devices[0]}"
    return f"one of devices {', '.join(map(str, devices))}"


def gain_text(it: Explanation, effect: Effect) -> str:
    """Return the proved gain of a change in per cent of the best value: `1.20 %`, `at most 1.20 %` or `0.50 to 1.20 %`.

    It is `INCONCLUSIVE` if the effect is (`Explanation.is_conclusive`), and empty if no schedule is known before or
    after the change.
    """
    gain, value = it.gain(effect), it.unchanged.value
    if gain is None or not value:
        return ""
    if not it.is_conclusive(effect):
        return INCONCLUSIVE
    least, most = (100 * float(x / value) for x in gain)
    if least == most:
        return f"{least:.2f} %"
    return f"at most {most:.2f} %" if effect.change.relaxes and not least else f"{least:.2f} to {most:.2f} %"
