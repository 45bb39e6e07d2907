"""Input of `calibrate`: tables of measured steps, files with measured times, or traces, converted to observations."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.file_names import uncompressed
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.steps_file import StepsFile, read_table, steps_from
from pipesched.layers.measured_step import MeasuredStep
from pipesched.problem.problem import Problem
from pipesched.problem.units import SECONDS, seconds_in
from runtime.traces.catalogue import Hints, read_traces
from runtime.traces.pipeline_trace import BlockTrace
from runtime.traces.problem_of_trace import trace_text
from solver.calibration.observation import Observation, of_layers, of_passes, of_step

SIZES = ("tensor", "context", "expert", "data")


@dataclass(frozen=True)
class MeasuredFiles:
    """The content of measured files, by kind.

    `steps` are rows of tables, each with the path of its model's configuration (None: not named); `times` are problems
    with measured times, `layers` paths and documents of plan files with measured layers. `hardware` is the device that
    the files name, None where none does. `notes` say what was not read.
    """

    steps: tuple[tuple[MeasuredStep, str | None], ...]
    times: tuple[Problem, ...]
    layers: tuple[tuple[str, object], ...]
    hardware: str | None
    notes: tuple[str, ...]


def read_measured(paths: Sequence[str], args: Namespace) -> MeasuredFiles:
    """Read tables and pipesched's own files (.csv, .yaml, .yml; .gz besides), and all others as traces of one run.

    `BadInput` if they name several kinds of devices, or a file has mistakes. `args` has the options that traces need
    (`pipeline`, `microbatches`).
    """
    steps, times, layers = list[tuple[MeasuredStep, str | None]](), list[Problem](), list[tuple[str, object]]()
    hardware, notes, traces = set[str](), list[str](), list[str]()
    for path in paths:
        ending = uncompressed(Path(path)).suffix.lower()
        if ending not in (".csv", ".yaml", ".yml"):
            traces.append(path)
            continue
        document = None if ending == ".csv" else read_document(path)
        given = document if isinstance(document, dict) else {}
        if "times" in given:
            times.append(problem_from(document, path, path))
        elif "layers" in given:
            layers.append((path, document))
        else:
            file = read_table(Path(path)) if ending == ".csv" else steps_from(document, path)
            steps += [(step, _near(file.config, path)) for step in file.steps]
            hardware |= {_near(file.hardware, path) or ""} - {""}
            notes += _unread(file, path)
    if traces:
        times.append(_traced(traces, args, notes))
    if len(hardware) > 1:
        raise BadInput(f"hardware: found {', '.join(sorted(hardware))}; allowed: measurements of one kind of device")
    return MeasuredFiles(tuple(steps), tuple(times), tuple(layers), next(iter(hardware), None), tuple(notes))


def observations_of(files: MeasuredFiles, args: Namespace, wanted: Wanted) -> list[Observation]:
    """Return the observations: those of tables of steps first, then of files with times, then of profiles by layer.

    Each is for the configuration of its file, or for `--config` if that is given. `BadInput` if there is neither, for
    times of other placements than linear and interleaved ones, and for a profile by layer whose unit of time is
    unknown. `wanted` are the training settings of profiles by layer.
    """
    configs = dict[str, ModelConfig]()

    def config(named: str | None) -> ModelConfig:
        path = args.config or named
        if path is None:
            raise BadInput("--config: missing; it is required where no file of measured steps names one")
        if path not in configs:
            configs[path] = read_config(path)
        return configs[path]

    found = [of_step(step, config(named)) for step, named in files.steps]
    found += [of_passes(problem, _ran(problem, args), config(None)) for problem in files.times]
    for path, document in files.layers:
        plan = plan_problem_from(document, path, path)
        unit = seconds_in(plan.time_unit.strip())
        if unit is None:
            raise BadInput(f"{path}: time_unit: found {plan.time_unit!r}; allowed: {', '.join(SECONDS)}")
        step = MeasuredStep(path, 0, _sizes(args), 1, 1, args.microbatch_size or 1, 1)
        found.append(of_layers(plan.model, float(unit), step, config(None), wanted))
    return found


def _ran(problem: Problem, args: Namespace) -> MeasuredStep:
    """Return the layout, from the options, in which the times of a problem were measured.

    `BadInput` for other placements. Allowed are linear and interleaved placements, with stage s on device s mod p.
    """
    stages, devices = problem.placement.stages, problem.devices
    if any(problem.placement.stage_device[stage] != stage % devices for stage in range(stages)):
        raise BadInput(f"{problem.name}: found placement {problem.placement.name}; allowed: linear, interleaved")
    return MeasuredStep(
        problem.name, 0, _sizes(args), devices, stages // devices, args.microbatch_size or 1, problem.microbatches,
        recompute=args.recompute, partition=args.partition,
    )  # fmt: skip


def _sizes(args: Namespace) -> tuple[tuple[str, int], ...]:
    return tuple((name, getattr(args, name) or 1) for name in SIZES)


def _traced(paths: Sequence[str], args: Namespace, notes: list[str]) -> Problem:
    """Return the problem that a run's traces show, in ms; adds to `notes` what was not read.

    `BadInput` for traces of single layers.
    """
    trace = read_traces(paths, Hints(args.pipeline, args.microbatches))
    if isinstance(trace, BlockTrace):
        raise BadInput(f"{', '.join(paths)}: found {trace.form} of single layers; allowed: traces of whole passes")
    notes += [f"{trace.form}: not read: {note}" for note in trace.notes]
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return problem_from(read_yaml(trace_text(trace, "traced", None, "makespan"), name), name, name)


def _unread(file: StepsFile, path: str) -> list[str]:
    return [f"{path}: not read: columns {', '.join(file.unread)}"] if file.unread else []


def _near(name: str | None, path: str) -> str | None:
    """Return the path of a file `name` that is named in the file `path`: relative to that file's folder if it is there.

    None if no name is given.
    """
    sibling = None if name is None else Path(path).parent / name
    return name if sibling is None or not sibling.is_file() else str(sibling)
