"""The command `pair`: the best interleaving of one forward and one backward on all streams, with a proof."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from commands.options.search import add_limits, interrupt_sets, limits_of, not_interrupted
from commands.options.values import whole
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json, draw, picture_kind, problem_of
from commands.shared.output import files_written, time, write_json
from commands.shared.tables import table
from commands.shared.watch import add_watch, stop_event
from pipesched.problem.formatting import with_unit
from pipesched.problem.passes import BW, B, Task
from pipesched.problem.quantities import Ticks
from pipesched.results.solution import Status
from solver.tasks.pair import Pair, best_pair

_MOST_STAGES = 10**6


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: problem file, stages of the two passes, limits, picture, `--json`, `--watch`."""
    parser.add_argument("problem", metavar="PROBLEM", help="problem file, YAML or JSON")
    for side in ("forward", "backward"):
        text = f"the stage whose {side} it is (default: 0)"
        parser.add_argument(f"--{side}-stage", type=whole(0, _MOST_STAGES), default=0, metavar="S", help=text)
    add_limits(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write a picture of it: .png, .svg or .pdf")
    add_json(parser)
    add_watch(parser)


def run(args: Namespace) -> Exit:
    """Search the best interleaving of a forward and a backward, print it, and with `-o` draw it.

    Exit code `INTERRUPTED` after Ctrl-C, else `DONE`. `BadInput` for a picture of an unknown format, before the search,
    and for stages that do not exist or are on no common device.
    """
    problem = problem_of(args.problem, None)
    if args.output:
        picture_kind(Path(args.output))  # before the search, since it may be refused
    stop = stop_event(args)
    with interrupt_sets(stop):
        pair = best_pair(problem, args.forward_stage, args.backward_stage, limits_of(args), stop)
    with not_interrupted():
        files = [draw(pair.timeline, "gantt", Path(args.output))] if args.output else []
    if args.json:
        write_json(_document(pair) | {"files": [str(path) for path in files]})
    else:
        _print(pair)
        files_written(files)
    return Exit.INTERRUPTED if pair.interrupted else Exit.DONE


def _document(pair: Pair) -> dict[str, object]:
    return {
        "value": float(pair.value),
        "lower_bound": float(pair.lower_bound),
        "status": pair.status.value,
        "in_turn": float(pair.in_turn),
        "orders": {where.stream: [_name(pair, task) for task in tasks] for where, tasks in pair.orders.items()},
    }


def _name(pair: Pair, task: Task) -> str:
    """Return a task's name with its kind of pass; a plain pass, whose only task has no name, by its kind alone."""
    kind = B if task.of.kind is BW else task.of.kind
    name = pair.problem.network.tasks[task.of.kind, task.of.stage][task.part].name
    return f"{kind.value}:{name}" if name else kind.value


def _print(pair: Pair) -> None:
    problem = pair.problem
    rows = [
        (where.stream, time(problem, _busy(pair, tasks)), " ".join(_name(pair, task) for task in tasks))
        for where, tasks in pair.orders.items()
    ]
    table(problem.name, [("stream", False), ("busy", True), ("order", False)], rows)
    value, bound, in_turn = (with_unit(one, problem.time_unit) for one in (pair.value, pair.lower_bound, pair.in_turn))
    if pair.status is Status.OPTIMAL:
        print(f"optimal: {value}; no order of the streams is shorter")
    else:
        print(f"best found: {value}; none is below {bound}")
    print(f"one pass after the other: {in_turn}")


def _busy(pair: Pair, tasks: Sequence[Task]) -> Ticks:
    return sum(pair.problem.network.tasks[task.of.kind, task.of.stage][task.part].ticks for task in tasks)


COMMANDS.register(
    Command(
        "pair",
        "for passes made of tasks on several streams: the best interleaving of a forward with a backward, with proof",
        configure,
        run,
        Group.FIND,
        "pair examples/deepseek-pair.yaml",
    )
)
