"""`solve --explain`: its options, the search as the terminal shows it, and the answer as story, table and JSON."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from threading import Event

from commands.shared.option_values import seconds
from commands.shared.output import in_file_units
from commands.shared.search_options import interrupt_sets, limits_of, progress_line
from commands.shared.tables import table
from pipesched.problem.formatting import plain
from pipesched.results.solution import Solution
from solver.analysis.bottleneck import story
from solver.analysis.sensitivity import BoundAndValue, Effect, Explanation, explain

UNTOLD = "not told"
TITLE = "Sensitivity: bounds proved, and best values found, by a short search each"


def add_explain(parser: ArgumentParser) -> None:
    """The options."""
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also why no schedule is better, and the sensitivity to memory, links and stage cuts",
    )
    parser.add_argument(
        "--explain-time",
        type=seconds,
        metavar="S",
        help="with --explain: seconds for all changes together (default: as --time-limit)",
    )


def explained(solution: Solution, args: Namespace) -> Explanation:
    """Try the changes, showing progress; Ctrl-C keeps those tried so far."""
    limits = replace(limits_of(args), seconds=args.explain_time or args.time_limit)
    stop = Event()
    with interrupt_sets(stop), progress_line() as say:
        return explain(solution, limits, lambda n, of, text: say(f"explaining {n + 1} of {of}: {text}"), stop)


def lines(it: Explanation) -> list[str]:
    """What helps most, the story, and what was not tried."""
    said = [*_advice(it), *story(it.bottleneck)]
    if it.untried:
        said.append(f"Not tried, as the time was up: {'; '.join(change.text for change in it.untried)}.")
    return said


def _advice(it: Explanation) -> list[str]:
    """What to change: the first rows of the table that may gain."""
    gains: list[tuple[str, bool]] = []
    for what, effect in _grouped(it):
        least, most = it.gain(effect) or (0, 0)
        if it.tells(effect) and most > 0:
            gains.append((f"{what} (the best possible value falls by {_gain(it, effect)})", least > 0))
    if not gains:
        return ["No change that was tried is known to help."] if it.effects else []
    (first, certain), *others = gains
    opening = "What helps most" if certain else "No change is proved to help; what may help most"
    following = [f" Next: {others[0][0]}."] if others else []
    return ["".join([f"{opening}: {first}.", *following])]


def show(solution: Solution, it: Explanation) -> None:
    """Print story and table."""
    print("\nwhy not better?")
    for line in lines(it):
        print(f"- {line}")
    if it.effects:
        table(TITLE, columns(solution), rows(it))
        for line in footnotes(it):
            print(line)


def footnotes(it: Explanation) -> list[str]:
    """What to keep in mind of the table."""
    now = it.as_it_is
    notes = []
    if now.value and now.value > now.lower_bound:
        share = 100 * float(1 - now.lower_bound / now.value)
        little = f"{ceil(share)} %"
        notes.append(
            f"The unchanged problem already has a gap of {share:.2f} %, so 'at most {little}' says almost nothing."
        )
    if any(_gain(it, effect) == UNTOLD for effect in it.effects):
        notes.append(f"{UNTOLD}: as short a search leaves as much open without the change.")
    return notes


def columns(solution: Solution) -> list[tuple[str, bool]]:
    """Headers of the table, and whether they head numbers."""
    unit = f"\n({solution.problem.time_unit})" if solution.problem.time_unit else ""
    return [
        ("change", False),
        (f"lower bound{unit}", True),
        (f"best found{unit}", True),
        ("proved: best possible\nvalue falls by", True),
    ]


def rows(it: Explanation) -> list[list[str]]:
    """The table: as it is, then what gains most first; devices with the same gain by an activation share a row."""
    made = [["as it is", _number(it.as_it_is.lower_bound), _number(it.as_it_is.value), ""]]
    for what, effect in _grouped(it):
        found = effect.outcome
        cells = [_number(found.lower_bound), _number(found.value), _gain(it, effect)]
        made.append([what, *(["no schedule fits", "", ""] if effect.reason else cells)])
    return made


def _grouped(it: Explanation) -> list[tuple[str, Effect]]:
    """What gains most first, each with its text; one for the devices on which an activation more does the same."""
    together: dict[tuple[object, ...], list[Effect]] = {}
    for effect in it.ranked():
        alone = effect.change.kind != "memory" or effect.change.device is None
        key = (effect.change.text,) if alone else (effect.outcome, effect.reason)
        together.setdefault(key, []).append(effect)
    return [(_text(effects), effects[0]) for effects in together.values()]


def _text(effects: Sequence[Effect]) -> str:
    devices = sorted(e.change.device for e in effects if e.change.kind == "memory" and e.change.device is not None)
    return f"one more activation on {_listed(devices)}" if devices else effects[0].change.text


def _listed(devices: Sequence[int]) -> str:
    if len(devices) == 1:
        return f"device {devices[0]}"
    return f"one of devices {', '.join(map(str, devices))}"


def _number(value: Fraction | None) -> str:
    return "none" if value is None else plain(float(value))


def _gain(it: Explanation, effect: Effect) -> str:
    """What is proved of a change; nothing where a search as short tells as little without it."""
    gain, value = it.gain(effect), it.as_it_is.value
    if gain is None or not value:
        return ""
    if not it.tells(effect):
        return UNTOLD
    least, most = (100 * float(x / value) for x in gain)
    if least == most:
        return f"{least:.2f} %"
    return f"at most {most:.2f} %" if effect.change.relaxes and not least else f"{least:.2f} to {most:.2f} %"


def document(solution: Solution, it: Explanation) -> dict[str, object]:
    """The object under `explanation` of `solve --json`; values in the file's unit."""
    bottleneck, problem = it.bottleneck, solution.problem
    further = [bottleneck.proved] if bottleneck.proved is not bottleneck.strongest else []
    certificates = [*further, bottleneck.strongest, *bottleneck.close]
    return {
        "binds": bottleneck.binds,
        "device": bottleneck.device,
        "story": [*_advice(it), *story(bottleneck)],
        "certificates": [
            {"kind": c.kind, "device": c.device, "value": in_file_units(problem, c.value), "text": c.text}
            for c in certificates
        ],
        "bound_without_memory": in_file_units(problem, bottleneck.without_memory),
        "bound_without_transfers": in_file_units(problem, bottleneck.without_transfers),
        "busiest_device": bottleneck.busiest,
        "work": in_file_units(problem, bottleneck.work),
        "as_it_is": _outcome(it.as_it_is),
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
