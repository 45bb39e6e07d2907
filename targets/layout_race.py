"""Layouts of a model on devices, each as a plan problem that a runtime can run, searched together for the best step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.model_configs.layouts import Layout, layouts_of
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_document, sequence_of
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.plan import plan_from
from solver.planning.progress import Report
from solver.planning.quick.quick_plan import quick_plan
from solver.planning.race import NO_TIME, RaceEntry, entered, raced_on
from solver.planning.time_shares import TimeShares


@dataclass(frozen=True)
@tunable
class LayoutParams:
    """Division of the time of `layouts` between first plans and searches."""

    first_share: float = tuned(
        1.0,
        "of a race's time, after which no further layout gets a first plan, if one has",
        0.1,
        1,
        "DeepSeek-V3 on 512 GPUs: first plans alone are within 0.1 % of a search of ten minutes; at 0.6, on a machine "
        "ten times as busy, some were not looked at, and the answer was 9 % worse",
    )


_PARAMS = LayoutParams()
# Sequences of a micro-batch that are tried where a batch is given and no sizes are.
MICROBATCH_SIZES = (1, 2, 4)
# The number of layouts looked at, of so many, and the best step in ms, if there is one.
Seen = Callable[[int, int, Fraction | None], None]
# Steps through layouts that spread over all of them wherever they end.
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Batch:
    """The batch of a training step: one of `microbatches` and `sequences` is given, the other None.

    `microbatches` is the number of micro-batches of all replicas together; `sequences` are divided into micro-batches.
    `sizes` are the numbers of sequences of a micro-batch to choose from, only one with `microbatches`. `BadInput`
    otherwise.
    """

    microbatches: int | None = None
    sequences: int | None = None
    sizes: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if (self.microbatches is None) == (self.sequences is None):
            found = "neither" if self.microbatches is None else "both"
            raise BadInput(f"--batch, --microbatches: found {found}; allowed: one of them")
        if self.microbatches is not None and len(self.sizes) > 1:
            raise BadInput(
                f"--microbatch-size: found {', '.join(map(str, self.sizes))}; allowed: several with --batch, the "
                "sequences of a step, which stay the same"
            )

    def options(self) -> list[tuple[int, int]]:
        """Return (micro-batches of all replicas together in a step, sequences of each) for each possible size.

        Sizes that do not divide `sequences` are left out; `BadInput` if none divides it.
        """
        if self.microbatches is not None:
            return [(self.microbatches, self.sizes[0])]
        assert self.sequences is not None
        found = [(self.sequences // size, size) for size in self.sizes if self.sequences % size == 0]
        if not found:
            sizes = ", ".join(map(str, self.sizes))
            raise BadInput(f"--microbatch-size: found {sizes}; allowed: divisors of the {self.sequences} sequences")
        return found


class Spread(NamedTuple):
    """A layout's training settings, its plan problem before restriction to a runtime, and the rates assumed."""

    wanted: Wanted
    problem: PlanProblem
    assumed: Mapping[str, Any]


@dataclass(frozen=True)
class LayoutRace:
    """All layouts of a model, with what was found for each.

    `rows` has the layouts that have a plan problem, after the search the best step first. `spread` has for each of them
    its settings and its plan problem before restriction to a runtime. `refused` has the reason why any other layout has
    no row.
    """

    rows: list[RaceEntry[Layout]]
    spread: Mapping[Layout, Spread]
    refused: Mapping[Layout, str]

    @property
    def least(self) -> Fraction:
        """The lower bound, in ms, on the best training step of all layouts.

        It is 0 if some layout was not looked at for want of time, or if no layout counts. A layout counts if it has a
        plan, if its search failed, or if it may have a plan that the time did not suffice to find. It does not count if
        it was dropped without a plan because it fits no memory, or because its bound is no less than the best step.
        """
        if NO_TIME in self.refused.values():
            return Fraction(0)
        known = [one.least for one in self.rows if one.step is not None or one.failed or one.dropped in ("", NO_TIME)]
        steps = [one.step.total for one in self.rows if one.step is not None]
        return min([*known, *steps], default=Fraction(0))


def best_layouts(
    config: ModelConfig, wanted: Wanted, gpus: int, batch: Batch, given: Mapping[str, int | None], source: str,
    target: str | None, limits: Limits, seen: Seen, report: Report, stop: Event,
) -> LayoutRace:  # fmt: skip
    """Return all layouts on these devices; those with the best first plans are searched further.

    `given` are the sizes of parallelism that are not searched, `target` is the runtime of `--for` (None: any), `gpus`
    the number of devices, `source` the name of the configuration, for messages. `seen` is called with (layouts looked
    at, all layouts, best step in ms or None) after each layout with a plan problem, `report` at every step of the
    searches. Setting `stop` ends them. `BadInput` if no layout has a plan problem.
    """
    time = TimeShares(limits)
    found = first_plans(config, wanted, gpus, batch, given, source, target, time, seen, stop)
    return replace(found, rows=raced_on(plan_from, found.rows, time.part(1, 1), report, stop))


def first_plans(
    config: ModelConfig, wanted: Wanted, gpus: int, batch: Batch, given: Mapping[str, int | None], source: str,
    target: str | None, time: TimeShares, seen: Seen, stop: Event,
) -> LayoutRace:  # fmt: skip
    """Return all layouts, unordered, with the first plans made at once; none is searched.

    `gpus` is the number of devices, `given` are the sizes of parallelism that are not searched, `source` is the
    configuration's name for messages, `target` the runtime of `--for` (None: any). `seen` is called with (layouts
    looked at, all layouts, best step in ms or None) after each layout with a plan problem. Once a first plan is known,
    setting `stop` or the end of the time ends the work; layouts not looked at by then are in `refused`, with `NO_TIME`
    as reason. `BadInput` with all reasons if no layout has a plan problem.
    """
    spread, refused, rows = dict[Layout, Spread](), dict[Layout, str](), list[RaceEntry[Layout]]()
    layouts = [*_all(config, wanted, gpus, batch, given)]
    best: Fraction | None = None
    for number, (layout, total) in enumerate(_spread_out(layouts), 1):
        if best is not None and (stop.is_set() or time.spent(_PARAMS.first_share)):
            refused[layout] = NO_TIME
            continue
        asked = replace(
            wanted, devices=layout.pipeline, microbatches=total // layout.data, sizes=layout.sizes,
            microbatch_size=layout.microbatch_size,
        )  # fmt: skip
        try:
            document = plan_document(config, asked)
            whole = plan_problem_from(document, source)
            form = None if target is None else PARTITION_FORMATS[target]
            problem = whole if form is None else restricted(whole, form.name, form.limits)[0]
        except BadInput as error:
            refused[layout] = error.mistakes[0]
            continue
        assert whole.step is not None
        spread[layout] = Spread(asked, whole, whole.step.assumed)
        row = entered(layout, problem)
        rows.append(row)
        row.first = None if row.dropped else quick_plan(problem)
        if row.first is not None:
            row.step = row.first.step
            best = row.step.total if best is None else min(best, row.step.total)
        seen(number, len(layouts), best)
    if not rows:
        raise BadInput(*dict.fromkeys(refused.values()))
    return LayoutRace(rows, spread, refused)


def _all(
    config: ModelConfig, wanted: Wanted, gpus: int, batch: Batch, given: Mapping[str, int | None]
) -> Iterator[tuple[Layout, int]]:
    """Yield each possible layout for each micro-batch size, with the micro-batches of all replicas in a step.

    `BadInput` with the reasons if there is none. `given` are sizes that are not searched, by name; `gpus` is the number
    of devices.
    """
    mistakes, found = list[str](), False
    for total, size in batch.options():
        try:
            for layout in layouts_of(config, gpus, total, sequence_of(config, wanted), given, wanted.device.node):
                found = True
                yield layout._replace(microbatch_size=size), total
        except BadInput as error:
            mistakes += error.mistakes
    if not found:
        raise BadInput(*mistakes)


def _spread_out(layouts: Sequence[tuple[Layout, int]]) -> list[tuple[Layout, int]]:
    """Return the layouts in another order, of which any beginning has layouts from all over the list."""
    places = sorted(range(len(layouts)), key=lambda at: at * _GOLDEN % 1)
    return [layouts[at] for at in places]
