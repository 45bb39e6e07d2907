"""Steps of measured rows with other rates of devices, along the critical path of one simulation each.

A schedule is ordered and simulated once. Where rates then change a little the critical path stays, and the step changes
by what the passes on it do: layers are derived again, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from benchmarks.measured.prediction import config_of, step_of, wanted_of
from benchmarks.measured.table import CONFIGS, Row
from pipesched.files.model_configs.hardware_table import DEVICES, Device
from pipesched.files.model_configs.plan_of_config import plan_document
from pipesched.files.plans.derived_layers import derived_from
from pipesched.files.plans.model_schema import HardwareSection
from pipesched.files.plans.schema import PlanFile
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import PLAN
from pipesched.layers.layer import LayerType
from pipesched.problem.passes import BW, B, F, W
from pipesched.results.plan_figures import step_time
from pipesched.simulation.critical_path import critical_path
from solver.calibration.predicted_step import plan_of, simulated, with_layout

_MS = 1000
# A number of passes, transfers or layers by what each takes: a layer's name and a kind of pass or a recomputation mode.
_Counts = Mapping[tuple[str, str], int]
_REDUCED, _STEPPED, _TRANSFER = "reduced", "stepped", ("", "transfer")


@dataclass(frozen=True)
class PathStep:
    """A row's step as a sum over its critical path: `counts` of what takes time there, and `constant` ms.

    The constant is what a device waited before its span, and what rounding leaves.
    """

    row: Row
    configs: Path
    form: PlanFile
    counts: _Counts
    constant: float = 0

    def seconds(self, devices: Mapping[str, Device]) -> float:
        """The step with these devices, its critical path as it was."""
        document = _document(self.row, self.configs, devices)
        hardware = HardwareSection.model_validate(document["hardware"])
        derived, step = derived_from(self.form.model_copy(update={"hardware": hardware}))
        taken: dict[tuple[str, str], Fraction] = {_TRANSFER: derived.transfer}
        for layer in derived.layers:
            taken |= {(layer.name, kind): time(layer) for kind, time in _TIMES.items()}
            taken |= {(layer.name, mode.name): mode.time for mode in layer.recompute}
        for kind, of in ((_REDUCED, step.reduction), (_STEPPED, step.optimizer)):
            taken |= {(name, kind): time for name, time in of.items()}
        total = sum((number * taken.get(key, 0) for key, number in self.counts.items()), Fraction(0))
        return (float(total) + self.constant) / _MS


_TIMES: Mapping[str, Callable[[LayerType], Fraction]] = {
    F: lambda layer: layer.forward,
    B: lambda layer: layer.backward,
    W: lambda layer: layer.weight or Fraction(0),
    BW: lambda layer: layer.full_backward,
}


def path_step(row: Row, configs: Path = CONFIGS, devices: Mapping[str, Device] = DEVICES) -> PathStep:
    """The sum of a row, which is its predicted step with these devices."""
    step = step_of(row)
    plan = plan_of(step, config_of(row, configs), wanted_of(row, devices))
    run = simulated(step, plan)
    layers, placement = run.partition.layers_of(plan.model), run.choice.on(plan.cluster.devices)
    path = [one.of for tasks in critical_path(run.timeline) for one in tasks]
    counts = Counter[tuple[str, str]]()
    for (kind, stage), passes in Counter((one.kind, one.stage) for one in path).items():
        for layer in layers[stage]:
            counts[layer.name, kind] += passes
        for again in run.partition.recomputed_on(stage) if kind in (B, BW) else ():
            counts[again.layer, again.mode] += passes * again.layers
    on = [placement.stage_device[one.stage] for one in path]
    counts[_TRANSFER] = sum(one != other for one, other in pairwise(on))
    assert plan.step is not None
    ends = on[-1]
    layers_of_device = [[layer.name for stage in stages for layer in layers[stage]] for stages in placement.stages_of]
    counts.update((name, _REDUCED) for name in layers_of_device[ends])
    optimizer = plan.step.optimizer
    counts.update(
        (name, _STEPPED) for name in max(layers_of_device, key=lambda own: sum(optimizer.get(name, 0) for name in own))
    )
    found = PathStep(row, configs, PlanFile.model_validate(_document(row, configs, devices)), counts)
    whole = float(step_time(plan, run).total)
    return replace(found, constant=whole - found.seconds(devices) * _MS)


def _document(row: Row, configs: Path, devices: Mapping[str, Device]) -> dict[str, dict[str, object]]:
    config = config_of(row, configs)
    found = in_plain_numbers(plan_document(config, with_layout(step_of(row), wanted_of(row, devices))), PLAN)
    assert isinstance(found, dict)
    return found
