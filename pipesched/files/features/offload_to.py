"""Activations that move to the memory of another device in place of the host's: the key `to` of `memory.offload`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.files.features.catalogue import FEATURES, Feature, ProblemForm
from pipesched.files.fields.offload_sections import HOST
from pipesched.files.fields.section import WrongPaths
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId

_KEY = "memory.offload.to"


def _given(form: ProblemForm) -> DeviceId | list[DeviceId | str] | None:
    section = form.memory
    found: int | list[int | str] | None = section.offload.to if section and section.offload else None
    return found


def _peers(to: DeviceId | list[DeviceId | str], devices: int) -> list[DeviceId | None]:
    """Return for each device the one to whose memory its activations move; None for the host.

    `to` is such a list, or one device for all others, whose own activations move to the host.
    """
    if isinstance(to, int):
        return [None if device == to else to for device in range(devices)]
    return [None if one == HOST else int(one) for one in to]


def _lower(problem: Problem, form: ProblemForm) -> Problem:
    to = _given(form)
    return problem if to is None else _moving(problem, _peers(to, problem.devices))


def _moving(problem: Problem, peers: Sequence[DeviceId | None]) -> Problem:
    """Return the problem in which the activations of device d move to device `peers[d]`, or to the host for None."""
    where = problem.placement.stage_device
    copies = [stage.offload and stage.offload._replace(to=peers[where[s]]) for s, stage in enumerate(problem.stages)]
    return problem.with_stages(offload=copies)


def _moves_to_devices(problem: Problem) -> bool:
    return any(stage.offload is not None and stage.offload.to is not None for stage in problem.stages)


def _unlowered(problem: Problem) -> Problem:
    return _moving(problem, [None] * problem.devices) if _moves_to_devices(problem) else problem


def _mistakes(form: ProblemForm, _: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes for lists of another length, devices that do not exist, and a device that is its own peer."""
    to, devices = _given(form), form.devices
    if to is None or devices is None or any(path.startswith("memory.offload") for path in wrong):
        return
    if isinstance(to, list) and len(to) != devices:
        yield f"{_KEY}: found {len(to)} values; allowed: one device, or a list of {devices}, one per device"
        return
    others = f"0 to {devices - 1}" if isinstance(to, int) else f"0 to {devices - 1}, or {HOST}"
    yield from (
        f"{_KEY}: found device {one}; allowed: {others}"
        for one in ([to] if isinstance(to, int) else to)
        if isinstance(one, int) and one >= devices
    )
    if devices == 1 and to == 0:
        yield f"{_KEY}: found device 0, the only one; allowed: another device"
    if isinstance(to, list):
        yield from (
            f"{_KEY}[{device}]: found device {device} itself; allowed: another device, or {HOST}"
            for device, one in enumerate(to)
            if one == device
        )
    if form.memory.offload.host_capacity is not None and None not in _peers(to, devices):
        allowed = f"one of the two, or {HOST} for some device"
        yield f"memory.offload.host_capacity: found with {_KEY} of every device; allowed: {allowed}"


FEATURES.register(
    Feature(
        name=_KEY,
        lower=_lower,
        unlowered=_unlowered,
        mistakes=_mistakes,
        present_in=_moves_to_devices,
        not_expressible="activations move to other devices, and this format moves them to the host",
        runs_in_torch=False,
    )
)
