"""The command `validate`: every rule that a schedule file breaks, and if its order deadlocks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial

from commands.reports import figures
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import write_json
from pipesched.errors import Deadlock
from pipesched.files.schedule_file import ScheduleFile, read_schedule
from pipesched.problem.formatting import size
from pipesched.problem.pass_names import pass_text
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate, validate_schedule
from pipesched.validation.violation import Violation

# Rules without which a timeline has no times to read figures off.
_NO_FIGURES = ("complete", "placement", "times", "parameters")


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: a schedule file, which carries its problem, and `--json`."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Check times, order and the figures that the file states; print figures, faults and any deadlock.

    With `--json` an object instead. Exit code 1 if there are faults or the order deadlocks.
    """
    file = read_schedule(args.schedule)
    violations = validate(file.timeline)
    violations += [Violation("claim", (), text) for text in file.false_claims()]
    complete = not validate_schedule(file.timeline.problem, file.timeline.schedule)
    cycle = _cycle(file) if complete else None
    deadlock_free = cycle is None if complete else None
    if args.json:
        name = partial(pass_text, file.timeline.problem)
        broken = [{"rule": v.rule, "passes": list(map(name, v.passes)), "text": v.text} for v in violations]
        write_json({"schedule": args.schedule, "valid": not violations and cycle is None, "violations": broken,
                    "deadlock_free": deadlock_free, "cycle": cycle})  # fmt: skip
    else:
        if not any(violation.rule in _NO_FIGURES for violation in violations):
            fits = not any(violation.rule == "memory" for violation in violations)
            problem = file.timeline.problem
            title = f"{file.timeline.schedule.name} on {problem.name}: {size(problem)}"
            title += "; lower bound as the file states it" if file.lower_bound_ticks is not None else ""
            figures.show(title, file.timeline, file.metrics, fits, file.lower_bound_ticks)
        for violation in violations:
            print(f"{violation.rule}: {violation.text}")
        if cycle:
            print("deadlock: " + " waits for ".join([*cycle, cycle[0]]))
        if not violations and cycle is None:
            print(f"{args.schedule}: valid, and its order runs to the end on any timing (no cycle of waits)")
    return Exit.NO if violations or cycle is not None else Exit.DONE


def _cycle(file: ScheduleFile) -> list[str] | None:
    """Return the cycle of waits if the order deadlocks, each pass once; None if it does not."""
    try:
        simulate(file.timeline.problem, file.timeline.schedule)
    except Deadlock as deadlock:
        return list(deadlock.cycle)
    return None


COMMANDS.register(
    Command(
        "validate",
        "a schedule file against its problem: every broken rule",
        configure,
        run,
        Group.USE,
        "validate results/schedule.json",
    )
)
