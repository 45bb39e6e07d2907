"""The option `--settings`: settings of runtimes that a plan is written for, checked before the search."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from commands.shared.file_arguments import write_schedule
from commands.shared.output import note
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.schedule_file import ScheduleFile
from pipesched.layers.partition import Partition, mistakes
from pipesched.layers.plan_problem import Choice, PlanProblem
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat
from runtime.partitions.partition_from import partition_from
from runtime.partitions.plan_settings import PlanSettings


def add_settings(parser: ArgumentParser) -> None:
    """Add `--settings`, names or None, and `--partition`, a runtime's setting `FORMAT=SETTING` to read, or None."""
    formats = "; ".join(f"{form.name}: {form.description}" for form in PARTITION_FORMATS)
    parser.add_argument(
        "--settings", metavar="NAMES", help=f"settings of runtimes, separated by commas, or all: {formats}"
    )

    parser.add_argument(
        "--partition", metavar="FORMAT=SETTING", help="take the partition from a runtime's setting, and decide the rest"
    )


def with_partition(problem: PlanProblem, text: str | None) -> PlanProblem:
    """Return the plan problem with the partition of a runtime's setting, on placements with that number of stages.

    `text` is that of `--partition` (None: the problem is returned as it is). Of several sets of devices that a plan may
    use those are kept on which the setting means the same partition. `BadInput` if the setting cannot be read or no
    placement has that number.
    """
    if text is None:
        return problem
    sizes = {one.devices for _, one in problem.clusters} or {problem.cluster.devices}
    read = {devices: _partition_on(devices, text, problem) for devices in sorted(sizes, reverse=True)}
    counts = next((found for found in read.values() if not isinstance(found, BadInput)), None)
    if counts is None:
        raise next(found for found in read.values() if isinstance(found, BadInput))
    able = {devices: _with_stages(problem, devices, len(counts)) for devices, found in read.items() if found == counts}
    fitting = tuple(choice for choice in problem.choices if any(choice in own for own in able.values()))
    if not fitting:
        raise BadInput(
            f"--partition: found {len(counts)} stages; allowed: as many as one of the file's placements has "
            f"({', '.join(map(str, problem.choices))})"
        )
    left = tuple((name, one) for name, one in problem.clusters if able.get(one.devices))
    return replace(problem, counts=counts, even=False, choices=fitting, clusters=left)


def _partition_on(devices: int, text: str, problem: PlanProblem) -> tuple[int, ...] | BadInput:
    """Return the layers of each stage that a setting means on so many devices, or the refusal (not raised).

    Stages are in the order of the chain; `text` is that of `--partition`.
    """
    try:
        counts = partition_from(text, problem.model, devices)
        wrong = mistakes(problem.model, Partition(counts))
    except BadInput as error:
        wrong = [*error.mistakes]
    return BadInput(*(f"--partition: {line}" for line in wrong)) if wrong else counts


def _with_stages(problem: PlanProblem, devices: int, stages: int) -> list[Choice]:
    """Return the placements of the file that have so many stages on so many devices, in the file's order."""
    return [choice for choice in problem.choices if len(choice.on(devices).chains[0]) == stages]


def chosen_formats(names: str | None) -> list[PartitionFormat]:
    """Return the formats of a comma-separated list; `BadInput` has a line for each unknown name.

    Empty if none are given (None). The text `all` stands for all formats.
    """
    if names is None:
        return []
    if names == "all":
        return list(PARTITION_FORMATS)
    found, mistakes = [], []
    for name in dict.fromkeys(word.strip() for word in names.split(",")):
        try:
            found.append(PARTITION_FORMATS[name])
        except BadInput as error:
            mistakes += [f"--settings: {line}" for line in error.mistakes]
    if mistakes:
        raise BadInput(*mistakes)
    return found


def write_settings(found: Sequence[PlanSettings], folder: Path) -> list[Path]:
    """Write `partition` + the format's suffix for each runtime that has settings; return the paths written.

    Runtimes that take any order also get `schedule.<format>.json`, a schedule file for `export` to convert; `BadInput`
    if no problem file can express its problem.
    """
    files = []
    for one in found:
        if one.settings is None or one.plan is None or one.plan.best is None:
            continue
        files.append(write_whole(folder / f"partition{one.form.suffix}", one.settings.text))
        if not one.form.limits.schedules:
            timeline = one.plan.best.timeline
            files.append(write_schedule(folder / f"schedule.{one.form.name}.json", ScheduleFile(timeline)))
    return files


def settings_texts(found: Sequence[PlanSettings], target: str | None) -> dict[str, tuple[list[str], str]]:
    """Return for each format, by name, the notes for a report and the text of its settings (empty: there are none).

    Notes say why there are no settings, or where the runtime differs from the plan. `target` is the runtime of `--for`
    (None: none), whose restrictions are not repeated.
    """
    return {
        one.form.name: (list(_notes(one, target)), "" if one.settings is None else one.settings.text) for one in found
    }


def show_settings(found: Sequence[PlanSettings], target: str | None) -> None:
    """Print every setting, and the plan's figures with it; refusals and differences as notes.

    Restrictions for `target`, the runtime of `--for`, are left out, since they are printed with the plan.
    """
    for one in found:
        for line in _notes(one, target):
            note(f"note: {line}")
        if one.settings is None:
            continue
        for name, value in one.settings.values.items():
            print(f"{name}: {value}")
            for line in one.figures:
                print(f"  {line}")


def _notes(one: PlanSettings, target: str | None) -> Iterator[str]:
    """Yield the refusal of a format, or the notes on its settings.

    Restrictions for the runtime of `--for` are left out, since they are printed with the plan.
    """
    if one.refusal is not None:
        yield one.refusal
    if one.words and one.settings is not None and one.form.name != target:
        yield f"{one.form.name}: planned for it alone: {'; '.join(one.words)}"
    yield from () if one.settings is None else one.settings.notes


def settings_document(found: Sequence[PlanSettings]) -> dict[str, object]:
    """Return the part `{"settings": …}` of `plan --json`: the entries of `PlanSettings.document` of all formats.

    If formats were refused, `settings_refused` has by format the `reason`, and `instead`, always None.
    """
    settings: dict[str, object] = {}
    for one in found:
        settings |= one.document()
    refused = {one.form.name: {"reason": one.refusal, "instead": None} for one in found if one.refusal is not None}
    return {"settings": settings} | ({"settings_refused": refused} if refused else {})
