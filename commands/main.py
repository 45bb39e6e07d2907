"""The way in from the shell: reads the arguments, runs the command, turns errors into lines and an exit code."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from commands.shared.catalogue import Exit
from commands.shared.encoding import never_fail_to_print
from commands.shared.output import complain
from commands.shared.parser import parser
from commands.shared.termination import drop_output, ended, exit_code, heed_signals, leave, outlive_reader, terminated
from commands.shared.watch import watch
from pipesched.errors import BadInput, Deadlock, Disagreement, defect_note


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    never_fail_to_print()
    with heed_signals():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        if sys.stdout is None:
            raise BadInput("standard output is closed; open it, or send it to /dev/null")
        outlive_reader()
        words = list(sys.argv[1:] if arguments is None else arguments)
        parsed = parser(words).parse_args(words)
        parsed.words = words  # as a report shows how to reproduce it
        code = watch(parsed, lambda: _answer(parsed)) if getattr(parsed, "watch", False) else _answer(parsed)
        return exit_code(code)
    except BadInput as error:
        return _refuse(error)
    except KeyboardInterrupt:
        return _interrupted()
    except (ImportError, SystemError):
        if not ended.is_set():
            raise
        return _interrupted()  # a signal in the midst of the import of a compiled library, which says no more
    except OSError as error:
        drop_output()
        complain(f"cannot write the output: {error.strerror or error}")
        return Exit.BAD_INPUT


def _answer(parsed: Namespace) -> int:
    """Run the command once; what is wrong with its input is said, and is its exit code."""
    try:
        code = int(parsed.run(parsed))
        sys.stdout.flush()
        return code
    except BadInput as error:
        return _refuse(error)
    except (Deadlock, Disagreement) as error:
        complain(str(error) if isinstance(error, Deadlock) else defect_note(str(error)))
        return Exit.NO


def _interrupted() -> int:
    complain("terminated" if terminated.is_set() else "interrupted")
    return exit_code(Exit.INTERRUPTED)


def _refuse(error: BadInput) -> int:
    for mistake in error.mistakes:
        complain(mistake)
    return Exit.BAD_INPUT


if __name__ == "__main__":
    leave(main())
