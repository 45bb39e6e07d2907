"""`solve --explain`: its options, the search as the terminal shows it, and the answer as story, table and JSON."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from threading import Event

from commands.option_values import seconds
from commands.output import in_file_units, table
from commands.searching import interrupt_sets, limits_of, progress_line
from pipesched.amounts import plain
from pipesched.solution import Solution
from solver.binding import story
from solver.explain import Effect, Explanation, Outcome, explain

UNTOLD = "not told"
TITLE = "What a change is worth: bounds proved, and best values found, by a short search each"


def add_explain(parser: ArgumentParser) -> None:
    """The options."""
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also why no schedule is better, and what more memory, faster links or moved work are worth",
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
    """The story, and what was not tried."""
    said = story(it.binding)
    if it.untried:
        said.append(f"Not tried, as the time was up: {'; '.join(change.text for change in it.untried)}.")
    return said


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
        notes.append(f"{share:.2f} % is open as it is: an `at most` holds that much without any change.")
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
    """The table: as it is, then every change; devices on which an activation more does the same share a row."""
    made = [["as it is", _number(it.as_it_is.lower_bound), _number(it.as_it_is.value), ""]]
    together: dict[tuple[str, ...], list[Effect]] = {}
    for effect in it.effects:
        change, found = effect.change, effect.outcome
        if effect.reason:
            cells = ["no schedule fits", "", ""]
        else:
            cells = [_number(found.lower_bound), _number(found.value), _gain(it, effect)]
        alone = change.kind != "memory" or change.device is None
        together.setdefault((change.text if alone else "", *cells), []).append(effect)
    for (text, *cells), effects in together.items():
        devices = sorted(e.change.device for e in effects if e.change.device is not None)
        made.append([text or f"one more activation on {_listed(devices)}", *cells])
    return made


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
    binding, problem = it.binding, solution.problem
    further = [binding.proved] if binding.proved is not binding.strongest else []
    certificates = [*further, binding.strongest, *binding.close]
    return {
        "binds": binding.binds,
        "device": binding.device,
        "story": story(binding),
        "certificates": [
            {"kind": c.kind, "device": c.device, "value": in_file_units(problem, c.value), "text": c.text}
            for c in certificates
        ],
        "bound_without_memory": in_file_units(problem, binding.without_memory),
        "bound_without_transfers": in_file_units(problem, binding.without_transfers),
        "busiest_device": binding.busiest,
        "work": in_file_units(problem, binding.work),
        "as_it_is": _outcome(it.as_it_is),
        "as_it_is_in_short": None if it.again is None else _outcome(it.again),
        "changes": [_effect(it, effect) for effect in it.effects],
        "not_tried": [change.text for change in it.untried],
        "interrupted": it.interrupted,
    }


def _outcome(outcome: Outcome) -> dict[str, float | None]:
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
