"""Ways to spread a model over devices, each as a plan problem of what a runtime can run, raced for the best step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.layouts import Layout, layouts_of
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_text, sequence_of
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.limits import Limits
from solver.planning.plan import plan_from
from solver.planning.progress import Report
from solver.planning.race import NO_TIME, Raced, raced
from solver.planning.time_shares import TimeShares


class Spread(NamedTuple):
    """A layout's plan file, and its plan problem before anything is left out for a runtime."""

    text: str
    problem: PlanProblem


@dataclass(frozen=True)
class LayoutRace:
    """The layouts by their steps, the best first; `spread` is what each was made from, `refused` why some were not."""

    rows: list[Raced[Layout]]
    spread: Mapping[Layout, Spread]
    refused: Mapping[Layout, str]

    @property
    def least(self) -> Fraction:
        """No step of any layout is below this, in ms; a layout dropped by its bound is no better than the best."""
        known = [one.least for one in self.rows if one.plan is not None or one.dropped in ("", NO_TIME)]
        return min([*known, *(one.step.total for one in self.rows if one.step is not None)])


def best_layouts(
    config: ModelConfig, wanted: Wanted, gpus: int, given: Mapping[str, int | None], source: str, target: str | None,
    limits: Limits, report: Report, stop: Event,
) -> LayoutRace:  # fmt: skip
    """All layouts of so many devices, raced. `wanted.microbatches` are those of all replicas together.

    `given` are sizes that are not searched, `target` is the runtime of `--for`. `BadInput` where nothing is left.
    """
    time = TimeShares(limits)
    spread, problems, refused = dict[Layout, Spread](), dict[Layout, PlanProblem](), dict[Layout, str]()
    for layout in layouts_of(config, gpus, wanted.microbatches, sequence_of(config, wanted), given):
        own = replace(
            wanted, devices=layout.pipeline, microbatches=wanted.microbatches // layout.data, sizes=layout.sizes
        )
        text = plan_text(config, own, source)
        try:
            whole = plan_problem_from(read_yaml(text, source), source)
            form = None if target is None else PARTITION_FORMATS[target]
            problems[layout] = whole if form is None else restricted(whole, form.name, form.limits)[0]
        except BadInput as error:
            refused[layout] = error.mistakes[0]
            continue
        spread[layout] = Spread(text, whole)
    if not problems:
        raise BadInput(*dict.fromkeys(refused.values()))
    return LayoutRace(raced(plan_from, problems, time.part(1, 1), report, stop), spread, refused)
