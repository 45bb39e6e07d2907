"""Entry of the command line: parses arguments, runs the command, and turns errors into messages and exit codes."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from commands.shared.catalogue import Exit
from commands.shared.encoding import never_fail_to_print
from commands.shared.output import complain
from commands.shared.parser import parser
from commands.shared.termination import (
    drop_output,
    ended,
    exit_code,
    heed_signals,
    leave,
    outlive_reader,
    output_errors,
    raise_if_ended,
    terminated,
)
from commands.shared.watch import watch
from pipesched.errors import BadInput, Deadlock, Disagreement, defect_note, raised


def main(arguments: Sequence[str] | None = None, began: float | None = None) -> int:
    """Run the command line and return the exit code.

    `arguments` are the words after the program's name (None: this process's). Time limits count from `began`, the start
    of the process on the monotonic clock in seconds (None: this call).
    """
    began = time.monotonic() if began is None else began
    never_fail_to_print()
    with heed_signals():
        return _run(arguments, began)


def _run(arguments: Sequence[str] | None, began: float) -> int:
    try:
        code = _answered(arguments, began)
        raise_if_ended()
        return code
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        # A signal in the midst of the import of a library may become any error there.
        return _interrupted() if ended.is_set() else _unexpected(error)


def _answered(arguments: Sequence[str] | None, began: float) -> int:
    try:
        if sys.stdout is None:
            raise BadInput("standard output is closed; open it, or send it to /dev/null")
        outlive_reader()
        words = list(sys.argv[1:] if arguments is None else arguments)
        parsed = parser(words).parse_args(words)
        parsed.words = words  # as a report shows how to reproduce it
        parsed.began = began
        code = watch(parsed, lambda: _answer(parsed)) if getattr(parsed, "watch", False) else _answer(parsed)
        if output_errors:
            complain(_not_written(output_errors[0]))
        return exit_code(code)
    except BadInput as error:
        return _refuse(error)


def _answer(parsed: Namespace) -> int:
    """Run the command once and return its exit code; print an error of its input (code 2), deadlock or defect (1)."""
    try:
        parsed.starting = time.monotonic() - parsed.began  # seconds until the command runs
        raise_if_ended()
        code = int(parsed.run(parsed))
        sys.stdout.flush()
        return code
    except BadInput as error:
        return _refuse(error)
    except (Deadlock, Disagreement) as error:
        complain(str(error) if isinstance(error, Deadlock) else defect_note(str(error)))
        return Exit.NO


def _unexpected(error: Exception) -> int:
    """Print an unexpected error in one line and return the exit code.

    That is 2 if output or a file cannot be written, or a file not be read, else 1, for a defect. In Python's
    development mode a defect is raised again.
    """
    if isinstance(error, OSError):
        if error.filename is None:
            drop_output()
        complain(_not_written(error))
        return Exit.BAD_INPUT
    if sys.flags.dev_mode:
        raise error
    complain(defect_note(f"{raised(error)} (python -X dev -m pipesched shows where it came from)", error))
    return Exit.NO


def _not_written(error: OSError) -> str:
    """Return what failed as text: the file, if the error names one, or else standard output."""
    what = "cannot write the output" if error.filename is None else f"{error.filename}: cannot be read or written"
    return f"{what}: {error.strerror or error}"


def _interrupted() -> int:
    complain("terminated" if terminated.is_set() else "interrupted")
    return exit_code(Exit.INTERRUPTED)


def _refuse(error: BadInput) -> int:
    for mistake in error.mistakes:
        complain(mistake)
    return Exit.BAD_INPUT


if __name__ == "__main__":
    leave(main())
