"""Kernels of local search and bounds: compiled in a process of their own, so that no time limit is overrun.

Numba compiles a function when it is first called and caches the machine code on disk. That takes ten seconds and more,
and cannot be interrupted. A search that finds no machine code therefore starts a process that makes it, and calls the
kernels once they are compiled. The process continues if the search ends before: the next one finds the code.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, ClassVar

from pipesched.checking.diagram.chain_steps import expand as expand_diagram
from pipesched.checking.diagram.completion import rows_before
from pipesched.checking.diagram.labels import prune_and_merge
from pipesched.compiled import cache_folder, fingerprint
from pipesched.problem.problem import Problem
from solver.beam.children import expand
from solver.beam.completion import rank_children
from solver.beam.nodes import take
from solver.construction.lists.kernel import compiled_run
from solver.construction.no_wait.kernel import next_starts
from solver.diagram.completion import completion_rows_before, keys_after
from solver.diagram.expansion import expand as expand_kept
from solver.diagram.reduction import reduced
from solver.local_search.annealing_kernel import anneal, anneal_with_modes
from solver.local_search.equal_value_kernel import settle
from solver.local_search.units.operation_units import modes_matter
from solver.tasks.policy.kernel import dispatch
from solver.tasks.serial_kernel import generate
from solver.tasks.tabu.kernel import tabu_search

_ONCE = "was still being compiled, which happens once after an installation: run the same command again"
STILL_COMPILING = f"some searches did not run, as their code {_ONCE}, and the answer may be better"
NOT_REFINED = f"the search for less memory and more slack did not run, as its code {_ONCE} for it"
_POLL = 0.05  # seconds between looks at the process
_COMPILER = f"{__name__.rpartition('.')[0]}.compile_kernels"


class Kernels:
    """Numba functions that are compiled together: a process runs `module` with their `name` as its argument.

    At most as many processes compile at a time as the search has workers, so that kernels needed first are ready first.
    A file next to the machine code of the first function, named by a hash of all sources, records that compilation has
    ended. `begun` are all kernels for which this process has started a compilation.
    """

    begun: ClassVar[list[Kernels]] = []

    def __init__(self, name: str, *functions: Any, module: str = _COMPILER) -> None:
        self.name, self.functions, self.module = name, functions, module
        self._ready = False
        self._compiler: Popen[bytes] | None = None
        self._since = 0.0

    @property
    def mark(self) -> Path:
        """Path of the file that records that these kernels are compiled."""
        return cache_folder(self.functions[0]) / f"{self.name}-{fingerprint(self.functions)[:16]}.compiled"

    def begin(self, most: int = 1) -> None:
        """Start a process that compiles the kernels, unless they are compiled or being compiled.

        Nothing is started while `most` processes compile other kernels. Where no process can be started, the first call
        of a kernel compiles it.
        """
        if self._ready or self._compiler is not None:
            return
        plain = not all(hasattr(one, "signatures") for one in self.functions)  # as without a compiler
        frozen = getattr(sys, "frozen", False)  # a program in one file, which is no interpreter
        if plain or frozen or not sys.executable or self.mark.exists():
            self._ready = True
        elif len(_under_way()) < most:
            # Modules are found where this process finds them, and not in its own folder.
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
            command = [sys.executable, "-P", "-m", self.module, self.name]
            self._since = time.monotonic()
            try:
                self._compiler = Popen(
                    command, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
                )
            except OSError:
                self._ready = True  # no process can be started
            else:
                Kernels.begun.append(self)

    def wait(self, over: Callable[[], bool], most: int = 1) -> bool:
        """Wait until calls compile nothing, starting the compilation if needed; False if `over()` is True before.

        True also if no process can compile or the process failed: then the first call of a kernel compiles it. The
        compilation starts when fewer than `most` processes compile other kernels.
        """
        self.begin(most)
        while not self._ready:
            if self._compiler is not None and self._compiler.poll() is not None:
                self._ready = True
            elif over():
                return False
            else:
                time.sleep(_POLL)
                self.begin(most)
        return True

    @property
    def under_way(self) -> str:
        """Name of the kernels and the seconds of their compilation so far, as `lists, 3 s`; empty if none runs."""
        running = self._compiler is not None and self._compiler.poll() is None
        return f"{self.name}, {time.monotonic() - self._since:.0f} s" if running else ""


def _under_way() -> list[str]:
    return [one.under_way for one in Kernels.begun if one.under_way]


def compiling() -> str:
    """Return names and seconds of the kernels being compiled now, as `lists, 3 s; search, 2 s`; empty if none."""
    return "; ".join(_under_way())


_DIAGRAMS = (expand_kept, reduced, keys_after, completion_rows_before, expand_diagram, prune_and_merge, rows_before)
LIST_KERNELS = Kernels("lists", compiled_run)
KERNELS = Kernels("search", anneal, settle)
MODE_KERNELS = Kernels("modes", anneal_with_modes, settle)
DIAGRAM_KERNELS = Kernels("diagrams", *_DIAGRAMS)
LONG_DIAGRAM_KERNELS = Kernels("long-diagrams", *_DIAGRAMS)  # with times that do not fit into 32 bits, too
LABEL_KERNELS = Kernels("labels", prune_and_merge)  # of the check of activation modes, all else of which is interpreted
BEAM_KERNELS = Kernels("beam", expand, take, rank_children, keys_after, completion_rows_before)
NO_WAIT_KERNELS = Kernels("no-wait", next_starts)
TABU_KERNELS = Kernels("tabu", tabu_search)
TASK_KERNELS = Kernels("tasks", anneal, settle, generate, dispatch)
ALL_KERNELS = (
    *(LIST_KERNELS, KERNELS, MODE_KERNELS, DIAGRAM_KERNELS, LONG_DIAGRAM_KERNELS, LABEL_KERNELS),
    *(BEAM_KERNELS, NO_WAIT_KERNELS, TABU_KERNELS, TASK_KERNELS),
)


def kernels_for(problem: Problem) -> Kernels:
    """Return the kernels that a local search on this problem calls.

    If passes are not plain they are those of tasks; else those with modes, if modes can save time, or those without.
    """
    if problem.view is None:
        return TASK_KERNELS
    return MODE_KERNELS if modes_matter(problem) else KERNELS
