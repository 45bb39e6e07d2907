"""Flags of the older 1F1B visualiser, which describe a pipeline without a problem file, and its configuration file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from commands.shared.file_arguments import problem_in_document
from pipesched.errors import BadInput
from pipesched.files.file_names import stem_of
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems.visualiser_file import output_file, to_problem_document
from pipesched.problem.problem import Problem

DEFAULT_PICTURE = "pipeline_1f1b.png"


def add_flags(parser: ArgumentParser) -> None:
    """Add the older visualiser's flags: configuration file, stages, micro-batches, times of passes and transfers.

    Their values stay text; None where not given.
    """
    flags = parser.add_argument_group("instead of a problem file")
    flags.add_argument(
        "-c",
        "--config",
        help="the older visualiser's configuration file (JSON or YAML); its keys go before the flags below",
    )
    flags.add_argument("-s", "--num-stages", help="number of pipeline stages (devices)")
    flags.add_argument("-b", "--num-batches", help="number of micro-batches")
    flags.add_argument("-f", "--forward-times", nargs="+", metavar="T", help="forward time of each stage (default 1)")
    flags.add_argument(
        "-bw", "--backward-times", nargs="+", metavar="T", help="backward time of each stage (default 2)"
    )
    flags.add_argument("--p2p-time", metavar="T", help="point-to-point communication time (default 0)")


def problem_and_picture(args: Namespace, document: object) -> tuple[Problem, Path | None]:
    """Return the problem and a picture's path.

    The problem is from the problem file, of which `document` is the content, or else from flags or configuration of the
    older visualiser. The path is None if no picture is to be drawn: with `--no-visualization`, or for a problem file if
    neither `--output` nor the file names one. For flags or a configuration a picture is drawn by default, as the older
    tool does. `BadInput` for a problem file together with such flags, for neither of the two, and for mistakes in a
    file or flag.
    """
    flags = [args.num_stages, args.num_batches, args.forward_times, args.backward_times, args.p2p_time]
    given = any(flag is not None for flag in flags)
    if args.problem is not None:
        if given or args.config:
            raise BadInput("found a problem file and flags that describe a pipeline; allowed: one of the two")
        problem, default = problem_in_document(document, args.problem, None), output_file(document)
    else:
        document = _older_document(args)
        source = args.config or "command line"
        name = stem_of(args.config) if args.config else "pipeline"
        if args.config and not isinstance(document, dict):
            raise BadInput(f"{args.config}: found no keys and values; allowed: num_stages, num_batches, ...")
        problem = problem_from(to_problem_document(document, source), source, name)
        default = output_file(document) or DEFAULT_PICTURE
    place = args.output or default
    return problem, Path(place) if place and not args.no_visualization else None


def _older_document(args: Namespace) -> object:
    """Return the older tool's configuration: its file, whose keys take precedence over flags, or the flags alone.

    `BadInput` if there is neither.
    """
    document: dict[str, Any] = {
        "num_stages": _number(args.num_stages, "--num-stages", "a whole number"),
        "num_batches": _number(args.num_batches, "--num-batches", "a whole number"),
        "forward_times": _numbers(args.forward_times, "--forward-times"),
        "backward_times": _numbers(args.backward_times, "--backward-times"),
        "p2p_time": _number(args.p2p_time, "--p2p-time"),
    }
    document = {key: value for key, value in document.items() if value is not None}
    if args.config:
        from_file = read_document(args.config)
        return {**document, **from_file} if isinstance(from_file, dict) else from_file
    if not document:
        raise BadInput("found no problem; allowed: a problem file, --config FILE, or --num-stages and --num-batches")
    return document


def _number(text: str | None, flag: str, allowed: str = "a number") -> int | Decimal | None:
    """Return the exact number that the user typed for a flag; None if it was not given.

    `BadInput` for anything else, with the text `allowed`.
    """
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise BadInput(f"{flag}: found {text!r}; allowed: {allowed}") from None
    return int(text) if text.lstrip("+-").isdigit() else number


def _numbers(texts: list[str] | None, flag: str) -> object:
    if texts is None:
        return None
    numbers = [_number(text, flag) for text in texts]
    return numbers[0] if len(numbers) == 1 else numbers
