"""The answer to `layouts`: all rows, and the recommended layout with its plan file and its best plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from pipesched.files.model_configs.expected_error import expected_error
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_text
from pipesched.layers.ample_memory import why_no_plan_is_limited
from pipesched.results.layouts import Layouts
from runtime.partitions.catalogue import PARTITION_FORMATS
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.progress import Report
from solver.planning.time_shares import TimeShares
from targets.layout_race import Batch, LayoutRace, Seen, best_layouts
from targets.layout_rows import raced_row, rows_of
from targets.plans import Planned, planned


@dataclass(frozen=True)
@tunable
class AnswerParams:
    """Division of the time of `layouts` between the search over layouts and the recommended one's plan."""

    race_share: float = tuned(
        0.6, "of the time for all layouts; the rest is for the plan of the recommended one", 0.1, 1
    )


_PARAMS = AnswerParams()


@dataclass(frozen=True)
class LayoutAnswer:
    """The answer to `layouts`: the layouts as rows, the race they come from, and the recommended one's plan.

    `text` is the recommended layout's plan file, `plan` the result of searching its plan, and `capacity` the least
    memory of one of its devices, in GiB (None too if memory is unlimited). If no layout fits, `text` is empty and the
    other two are None.
    """

    layouts: Layouts
    race: LayoutRace
    text: str = ""
    plan: Planned | None = None
    capacity: Fraction | None = None


def answered(
    config: ModelConfig, wanted: Wanted, gpus: int, batch: Batch, given: Mapping[str, int | None], source: str,
    target: str | None, limits: Limits, seen: Seen, report: Report, stop: Event, planning: Callable[[], object],
) -> LayoutAnswer:  # fmt: skip
    """Search all layouts of a model, then plan the recommended one in the remaining time.

    `config` is the model, `wanted` its training settings, `gpus` the number of devices, `given` the sizes of
    parallelism that are not searched, `source` the configuration's name for messages, `target` the runtime of `--for`
    (None: any). `seen` is called with (layouts looked at, all layouts, best step in ms or None) after each layout with
    a plan problem, `report` at every step of a search, and `planning` once, between the two searches, unless no layout
    fits. Setting `stop` ends the searches. `BadInput` if no layout has a plan problem.
    """
    time = TimeShares(limits)
    race = best_layouts(
        config, wanted, gpus, batch, given, source, target, time.part(_PARAMS.race_share, 1), seen, report, stop
    )
    error = expected_error(wanted.hardware, bool(config.model.get("experts")), bool(config.model.get("mixer")))
    found = rows_of(race, wanted, gpus, error)
    if found.recommended is None:
        return LayoutAnswer(found, race)
    planning()
    raced = raced_row(race, found.recommended)
    spread, forms = race.spread[raced.key], [] if target is None else [PARTITION_FORMATS[target]]
    best_plan = planned(
        spread.problem, spread.problem, target, forms, time.part(1, 1), report, report, stop, raced.start
    )
    ample = why_no_plan_is_limited(best_plan.found.problem)
    if ample is not None:
        best_plan = replace(best_plan, found=replace(best_plan.found, notes=(*best_plan.found.notes, ample)))
    raced.take(best_plan.found)
    rows = rows_of(race, wanted, gpus, error)
    chosen = next(row for row in rows.rows if row.sizes == found.recommended.sizes)
    capacity = raced.problem.cluster.capacity
    return LayoutAnswer(
        replace(rows, recommended=chosen),
        race,
        plan_text(config, spread.wanted, source),
        best_plan,
        None if capacity is None else min(capacity),
    )
