"""Report on why a measured step took longer than predicted: cost of each assumption, and late starts of passes."""

from __future__ import annotations

from statistics import mean

from commands.shared.tables import Column, table
from pipesched.measurement.late_starts import ASSUMPTIONS, LateStart, LateStarts
from pipesched.measurement.pass_causes import Cause, Split
from plots.late_starts import render_late_starts
from plots.render import Format

_ASSUMED = {
    Cause.STAGE_TIMES: "a stage's passes take the problem's times",
    Cause.CONTENTION: "passes take as long beside a message of their device",
    Cause.MICROBATCHES: "micro-batches take the same time",
    Cause.JITTER: "steps take the same time",
    Cause.TRANSFERS: "messages take the problem's transfer time",
    Cause.PAUSES: "devices go from pass to pass without a pause",
    Cause.OTHER_PATH: "(the prediction waits for other passes there)",
}
_HEADS = {
    Cause.TRANSFERS: "transfers",
    Cause.PAUSES: "pauses",
    Cause.CONTENTION: "contention",
    Cause.JITTER: "jitter",
    Cause.MICROBATCHES: "micro-\nbatches",
    Cause.STAGE_TIMES: "stage\ntimes",
    Cause.OTHER_PATH: "other\npath",
}


def document(found: LateStarts | None) -> dict[str, object] | None:
    """Return the object under `late_starts` in JSON output; times are floats in seconds, None if `found` is None.

    `step` counts from 0; `predicted` and `measured` are its makespans. By name of cause, `causes` adds up to their
    difference, and `replaced_alone` has the prediction with one assumption replaced; `costs_most` is such a name. The
    lists are `largest`, at most five delays (`pass`, `cause`, `seconds`), the largest first; `devices`, means of the
    passes (`mean_late`, `causes`); and `passes`, each after its predecessors, with `predicted` and `measured` starts.
    """
    if found is None:
        return None
    return {
        "step": found.step,
        "predicted": found.predicted,
        "measured": found.measured,
        "causes": _plain(found.causes),
        "replaced_alone": _plain(found.alone),
        "costs_most": found.costliest.value,
        "largest": [{"pass": str(p), "cause": cause.value, "seconds": seconds} for p, cause, seconds in found.largest],
        "devices": [{"mean_late": mean(p.late for p in own), "causes": _means(own)} for own in _by_device(found)],
        "passes": [
            {"pass": str(p.of), "device": p.device, "predicted": p.predicted, "measured": p.measured,
             "causes": _plain(p.causes)}
            for p in found.passes
        ],
    }  # fmt: skip


ASSUMED = (
    Column("assumed"),
    Column("costs on the\ncritical path", True),
    Column("predicted with\nwhat was measured", True),
)
DEVICES = (
    Column("device", True),
    Column("passes", True, 3),
    Column("start late\n(mean)", True),
    *(Column(head, True, 1 + (cause is Cause.OTHER_PATH)) for cause, head in _HEADS.items()),
    Column("latest"),
)


def show(schedule: str, found: LateStarts | None) -> None:
    """Print the cost of each assumption, the most costly one, and the late starts by device.

    If `found` is None, a line says that passes have several tasks.
    """
    if found is None:
        print(f"{schedule}: passes of several tasks, of which the trace tells no single one: late starts are not split")
        return
    rows = assumed_rows(found)
    table(f"{schedule}, what each assumption costs ({step_text(found)})", ASSUMED, rows, bold=[len(rows) - 1])
    for sentence in sentences(found):
        print(sentence)
    table(f"{schedule}, late starts of each device, mean of its passes, and why (ms)", DEVICES, device_rows(found))


def step_text(found: LateStarts) -> str:
    """Return a description of the step that is examined."""
    return f"step {found.step + 1}, the median: {_ms(found.measured)} ms for {_ms(found.predicted)} ms predicted"


def assumed_rows(found: LateStarts) -> list[list[str]]:
    """Return a table row for each assumption of the prediction, and one for the sum; times are in ms.

    A row has what the assumption costs on the critical path, and the prediction with the measured times in its place.
    """
    rows = [
        [_ASSUMED[cause], _signed(found.causes[cause]), _ms(found.alone[cause]) if cause in found.alone else ""]
        for cause in (*ASSUMPTIONS, Cause.OTHER_PATH)
    ]
    return [*rows, ["measured less predicted", _signed(found.measured - found.predicted), ""]]


def sentences(found: LateStarts) -> list[str]:
    """Return sentences that name the most costly assumption, and the passes that delay the step most."""
    lines = [
        f"costs most: that {_ASSUMED[found.costliest]}; with what was measured instead, and all else as assumed, "
        f"{_ms(found.predicted)} ms become {_ms(found.alone[found.costliest])} ms"
    ]
    if found.largest:
        named = (f"{p} {_signed(seconds)} ({_in_line(cause)})" for p, cause, seconds in found.largest)
        lines.append(f"largest delays on the critical path, ms: {', '.join(named)}")
    return lines


def device_rows(found: LateStarts) -> list[list[str]]:
    """Return a table row for each device, texts for the columns `DEVICES`, times in ms.

    Its cells: device, number of its passes, their mean delay, the parts of that mean by cause (in the order of
    `_HEADS`), and the latest pass with its delay.
    """
    rows = []
    for device, own in enumerate(_by_device(found)):
        latest = max(own, key=lambda p: p.late)
        split = _means(own)
        figures = [_signed(mean(p.late for p in own)), *(_signed(split[cause]) for cause in _HEADS)]
        rows.append([str(device), str(len(own)), *figures, f"{latest.of} by {_ms(latest.late)}"])
    return rows


def picture(schedule: str, found: LateStarts, format: Format = "png") -> bytes:
    """Return a picture of the passes' late starts, with their causes, as the bytes of a file of this format."""
    names = {cause: _in_line(cause) for cause in (*ASSUMPTIONS, Cause.OTHER_PATH)}
    return render_late_starts(found, names, f"{schedule}: {step_text(found)}", format)


def _in_line(cause: Cause) -> str:
    """Return the short name of a cause, from its column header, on one line."""
    return _HEADS[cause].replace("-\n", "-").replace("\n", " ")


def _by_device(found: LateStarts) -> list[list[LateStart]]:
    devices = 1 + max(p.device for p in found.passes)
    return [[p for p in found.passes if p.device == device] for device in range(devices)]


def _means(passes: list[LateStart]) -> dict[str, float]:
    return {cause.value: mean(p.causes[cause] for p in passes) for cause in Cause} if passes else {}


def _plain(split: Split) -> dict[str, float]:
    return {cause.value: seconds for cause, seconds in split.items()}


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3f}"


def _signed(seconds: float) -> str:
    return f"{round(1000 * seconds, 3) + 0.0:+.3f}"
