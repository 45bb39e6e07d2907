"""Kernels of local search and bounds: compiled in a process of their own, so that no time limit is overrun.

Numba compiles a function when it is first called and keeps the machine code on disk. That takes ten seconds and more,
in which nothing can be interrupted. So a search that finds no machine code starts a process that makes it, and calls
the kernels once it is there. The process goes on where the search ends before: the next one finds the code.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, ClassVar

from pipesched.checking.crossing_chains.alone import fill_in, has_a_way_on
from pipesched.checking.crossing_chains.fewer import fewer
from pipesched.checking.crossing_chains.orders import all_longer, may_come
from pipesched.checking.crossings.rounds import all_after
from pipesched.checking.diagram.completion import one_before
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.replay import expand as expand_diagram
from pipesched.problem.problem import Problem
from solver.beam.below import rank_children
from solver.beam.children import expand
from solver.beam.nodes import take
from solver.bounds.crossing.rounds import one_round
from solver.construction.lists.kernel import compiled_run
from solver.diagram.all_chains.follow import states_before
from solver.diagram.all_chains.guide import may_follow
from solver.diagram.all_chains.layers import successors_of_chains
from solver.diagram.completion import keys_after, rests_before
from solver.diagram.expansion import expand as expand_kept
from solver.diagram.reduction import reduced
from solver.local_search.annealing_kernel import anneal, anneal_with_modes
from solver.local_search.equal_value_kernel import settle
from solver.local_search.units.operation_units import modes_matter
from solver.step_orders.continuations import best_ways, ways_before
from solver.step_orders.labels import best_of, longer
from solver.step_orders.weights import advance_whole
from solver.step_orders.weights import settle as settle_step
from solver.tasks.policy.kernel import dispatch
from solver.tasks.serial_kernel import generate
from solver.tasks.tabu.kernel import tabu_search

_POLL = 0.05  # seconds between looks at the process


class Kernels:
    """Numba functions, and the module whose run as a program, with these arguments, calls them all.

    One process compiles at a time, so that what is wanted first is there first.
    """

    _compiling: ClassVar[Popen[bytes] | None] = None

    def __init__(self, functions: Sequence[Any], module: str, *arguments: str) -> None:
        self.functions, self.module, self.arguments = functions, module, arguments
        self._ready = False
        self._compiler: Popen[bytes] | None = None

    def begin(self) -> None:
        """Start to compile what is not, once; where no process can be started, the first call compiles."""
        self._ready = self._ready or all(map(is_compiled, self.functions))
        frozen = getattr(sys, "frozen", False)  # a program in one file, which is no interpreter
        if self._ready or self._compiler is not None or self._must_wait():
            return
        if frozen or not sys.executable:
            self._ready = True  # where it is called it is compiled
            return
        # Modules are found where this process finds them, and not in its own folder.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
        command = [sys.executable, "-P", "-m", self.module, *self.arguments]
        self._compiler = Kernels._compiling = Popen(
            command, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )

    def _must_wait(self) -> bool:
        """Whether a process compiles other kernels."""
        return Kernels._compiling is not None and Kernels._compiling.poll() is None

    def wait(self, over: Callable[[], bool]) -> bool:
        """Whether a call would not compile, waiting for that until `over`. True where no process compiles."""
        while not self._ready:
            self.begin()
            if self._compiler is not None and self._compiler.poll() is not None:
                self._ready = True
            elif over():
                return False
            else:
                time.sleep(_POLL)
        return True


def is_compiled(function: Any) -> bool:
    """In this process or on disk, newer than its source. A plain function, as without a compiler, always is."""
    if not hasattr(function, "signatures") or function.signatures:
        return True
    code = function.py_func.__code__
    made = [path.stat().st_mtime for path in Path(function.stats.cache_path).glob(f"*.{code.co_name}-*.nbi")]
    return max(made, default=0.0) > Path(code.co_filename).stat().st_mtime


_COMPILER = f"{__name__.rpartition('.')[0]}.compile_kernels"
# Those of the check of any decision diagram.
CHECKED = (expand_diagram, told_apart)
LIST_KERNELS = Kernels((compiled_run,), _COMPILER, "lists")
KERNELS = Kernels((anneal, settle), _COMPILER)
MODE_KERNELS = Kernels((anneal_with_modes, settle), _COMPILER, "modes")
CROSSING_KERNELS = Kernels((one_round, all_after), _COMPILER, "crossings")
DIAGRAM_KERNELS = Kernels(
    (expand_kept, reduced, keys_after, rests_before, *CHECKED, one_before),
    _COMPILER,
    "diagrams",
)
CHAIN_KERNELS = Kernels(
    (
        *(successors_of_chains, reduced, states_before, may_follow),
        *(may_come, all_longer, fewer, fill_in, has_a_way_on),
    ),
    _COMPILER,
    "chains",
)
ORDER_KERNELS = Kernels(
    (keys_after, rests_before, ways_before, best_ways, longer, best_of, advance_whole, settle_step), _COMPILER, "orders"
)
BEAM_KERNELS = Kernels((expand, take, rank_children, keys_after, rests_before), _COMPILER, "beam")
TABU_KERNELS = Kernels((tabu_search,), _COMPILER, "tabu")
TASK_KERNELS = Kernels((anneal, settle, generate, dispatch), _COMPILER, "tasks")


def kernels_for(problem: Problem) -> Kernels:
    """Those that a local search on this problem calls."""
    if problem.network.options or not problem.network.one_task_each:
        return TASK_KERNELS
    return MODE_KERNELS if modes_matter(problem) else KERNELS
