"""Writes what the README's first command prints into README.md.

python -m docs.make_readme
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from commands.main import main as command_line
from solver.engine.kernels import KERNELS

README = Path(__file__).resolve().parents[1] / "README.md"
SHOWN = re.compile(r"(<!-- result:.*?-->\n```\n)(.*?)(```)", re.DOTALL)


def command(text: str) -> list[str]:
    """Return the arguments of the first `solve` in the README, without its output folder and with one worker."""
    found = re.search(r"python3 go\.py (solve) (\S+)", text)
    assert found
    return [found[1], str(README.parent / found[2]), "--workers", "1"]


def printed(text: str) -> list[str]:
    """Return the lines that the README's command prints.

    It first waits until all code is compiled, since the answer would otherwise depend on when that is done.
    """
    KERNELS.wait(lambda: False)
    with redirect_stdout(io.StringIO()) as output:
        assert command_line(command(text)) == 0
    return [line.rstrip() for line in output.getvalue().splitlines()]


def shown(text: str) -> list[str]:
    """Return the lines that the README shows."""
    found = SHOWN.search(text)
    assert found
    return found[2].splitlines()


def main() -> None:
    """Replace the lines that the README shows by the verdict and the table that the command prints."""
    text = README.read_text()
    lines = printed(text)
    last = next(at for at, line in enumerate(lines) if line.startswith("└")) + 1
    result = "\n".join(lines[:last]) + "\n"
    README.write_text(SHOWN.sub(lambda found: found[1] + result + found[3], text))


if __name__ == "__main__":
    main()
