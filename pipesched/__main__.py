"""`python -m pipesched`, `torchrun -m pipesched`, and the entry of the `pipesched` script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    from commands.main import main as command_line
    from commands.shared.termination import leave

    leave(command_line())


def _find_our_packages_first() -> None:
    """`python -m` searches the caller's folder before all others, and it may hold a `solver.py`, or a `commands/`.

    In an installed wheel all packages lie in `pipesched` and this changes nothing that matters; in a checkout they lie
    beside it. A model of the caller's own is looked for in that folder when it is loaded.
    """
    ours = str(Path(__file__).resolve().parents[1])
    if sys.path[0] == str(Path.cwd()):
        del sys.path[0]
    if ours not in sys.path:
        sys.path.insert(0, ours)


if __name__ == "__main__":
    _find_our_packages_first()
    main()
