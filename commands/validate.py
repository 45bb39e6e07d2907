"""`validate`: every rule a schedule file breaks, and whether its order can run to the end at all."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_json
from commands.output import write_json
from pipesched.errors import Deadlock
from pipesched.schedule_file import ScheduleFile, read_schedule
from pipesched.simulator import simulate
from pipesched.validator import validate, validate_schedule
from pipesched.violation import Violation


def configure(parser: ArgumentParser) -> None:
    """A schedule file carries its problem."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Judge times and order; exit 1 if anything is wrong."""
    file = read_schedule(args.schedule)
    violations = validate(file.timeline)
    violations += [Violation("claim", (), text) for text in file.false_claims()]
    complete = not validate_schedule(file.timeline.problem, file.timeline.schedule)
    circle = _circle(file) if complete else None
    deadlock_free = circle is None if complete else None
    if args.json:
        broken = [{"rule": v.rule, "passes": [str(p) for p in v.passes], "text": v.text} for v in violations]
        write_json({"schedule": args.schedule, "valid": not violations and circle is None, "violations": broken,
                    "deadlock_free": deadlock_free, "circle": circle})  # fmt: skip
    else:
        for violation in violations:
            print(f"{violation.rule}: {violation.text}")
        if circle:
            print("deadlock: " + " waits for ".join([*circle, circle[0]]))
        if not violations and circle is None:
            print(f"{args.schedule}: valid, and its order runs to the end on any timing (no circle of waits)")
    return Exit.NO if violations or circle is not None else Exit.DONE


def _circle(file: ScheduleFile) -> list[str] | None:
    """The circle of waits in the order, if there is one; every pass is known to stand in it once."""
    try:
        simulate(file.timeline.problem, file.timeline.schedule)
    except Deadlock as deadlock:
        return list(deadlock.circle)
    return None


COMMANDS.register(Command("validate", "a schedule file against its problem: every broken rule", configure, run))
