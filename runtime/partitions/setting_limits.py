"""Limits that several runtimes share: refusals of settings, in one line that begins with the format."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL
from pipesched.layers.roles import Role
from pipesched.problem.placement import interleaved
from runtime.partitions.staged_model import StagedModel, StageLayers

BACKWARD_OF_EVERY_STAGE = "it runs a backward of every stage"


def one_chain(name: str, model: StagedModel) -> None:
    """Raise `BadInput` for placements with every stage on two devices, or whose chain is not in stage order.

    The message begins with `name`, that of the format.
    """
    chains = model.placement.chains
    if chains != (tuple(range(model.placement.stages)),):
        what = "every stage on two devices" if len(chains) > 1 else "stages out of order"
        raise BadInput(f"{name}: not supported: a {model.placement.name} placement has {what}")


def loop(name: str, model: StagedModel, chunks: int | None = None) -> int:
    """Return the number of stages of a device; `BadInput` unless stage s is on device s mod p.

    Also `BadInput` if a device has more than `chunks` stages (None: any number is allowed). The message begins with
    `name`, that of the format.
    """
    one_chain(name, model)
    devices = model.devices
    per_device, remainder = divmod(len(model.stages), devices)
    if remainder or model.placement.stage_device != interleaved(devices, per_device).stage_device:
        where = ", ".join(map(str, model.placement.stage_device))
        raise BadInput(
            f"{name}: not supported: stages on devices {where}; it puts stage s on device s mod {devices}"
            f" (placement linear or interleaved)"
        )
    if chunks is not None and per_device > chunks:
        raise BadInput(f"{name}: not supported: {per_device} stages a device; it has {chunks} a device")
    return per_device


def every_stage_trains(name: str, model: StagedModel) -> None:
    """Raise `BadInput` for stages of frozen layers that no gradient reaches.

    The message begins with `name`, that of the format.
    """
    frozen = [at for at, stage in enumerate(model.stages) if stage.forward_only]
    if frozen:
        raise BadInput(f"{name}: not supported: frozen layers alone on stage {frozen[0]}; {BACKWARD_OF_EVERY_STAGE}")


def microbatches_a_device(name: str, model: StagedModel, least: int) -> None:
    """Raise `BadInput` if there are fewer micro-batches than `least` for each device.

    The message begins with `name`, that of the format.
    """
    if model.microbatches < least * model.devices:
        raise BadInput(
            f"{name}: not supported: {model.microbatches} micro-batches on {model.devices} devices; it has at "
            f"least {at_least_each(least)}"
        )


def at_least_each(least: int) -> str:
    """Return the least number of micro-batches for each device as a phrase: "one for each", "2 for each"."""
    return f"{'one' if least == 1 else least} for each"


def no_mtp(name: str, model: StagedModel, runtime: str) -> None:
    """Raise `BadInput` for multi-token prediction layers.

    The message begins with `name`, that of the format, and ends with `runtime`, the reason.
    """
    if model.mtp:
        raise BadInput(f"{name}: not supported: multi-token prediction layers; {runtime}")


def mtp_on_last_stage(name: str, model: StagedModel, runtime: str) -> None:
    """Raise `BadInput` for MTP layers on any stage but the last.

    The message begins with `name`, that of the format, and ends with `runtime`, the reason.
    """
    for at, stage in enumerate(model.stages[:-1]):
        if stage.count(Role.MTP):
            raise BadInput(f"{name}: not supported: a multi-token prediction layer on stage {at}; {runtime}")


def known_modes(name: str, model: StagedModel, *modes: str) -> None:
    """Raise `BadInput` for recomputation modes that are not among `modes`, and for recomputed embeddings and heads.

    The message begins with `name`, that of the format.
    """
    for stage in model.stages:
        unknown = [mode for mode in stage.recompute_modes if mode not in modes]
        if unknown:
            raise BadInput(
                f"{name}: not supported: recomputation in the way {unknown[0]!r}; it knows {', '.join(modes)}"
            )
    refuse_ends(name, model)


def refuse_ends(name: str, model: StagedModel) -> None:
    """Raise `BadInput` for recomputed embeddings and heads; the message begins with `name`, that of the format."""
    for at, stage in enumerate(model.stages):
        for run in stage.runs:
            if any(run.recomputed.values()) and run.role in (Role.EMBEDDING, Role.HEAD):
                raise BadInput(f"{name}: not supported: a recomputed {run.role.value} (stage {at})")


def first_recomputed(name: str, model: StagedModel, *roles: Role) -> list[int]:
    """Return the number of fully recomputed layers with these roles on each stage.

    Raises `BadInput` if on some stage they are not the first of its layers with these roles; the message begins with
    `name`, the name of the format.
    """
    return [_leading(name, at, stage, roles) for at, stage in enumerate(model.stages)]


def by_chunk(counts: list[int], devices: int) -> list[list[int]]:
    """Return `counts`, numbers by stage, as a list for each chunk with a number for each device.

    Stage s is on device s mod p.
    """
    return [counts[at : at + devices] for at in range(0, len(counts), devices)]


def _leading(name: str, at: int, stage: StageLayers, roles: tuple[Role, ...]) -> int:
    total, short = 0, None
    for run in (run for run in stage.runs if run.role in roles):
        number = sum(run.recomputed.get(mode, 0) for mode in FULL)
        if number and short is not None:
            raise BadInput(
                f"{name}: not supported: stage {at} recomputes {number} {run.name} and not all of its {short}; "
                "it recomputes the first layers of a stage"
            )
        total += number
        if number < run.layers:
            short = run.name
    return total


def all_or_none(name: str, model: StagedModel, modes: tuple[str, ...], setting: str) -> bool:
    """Return True if every transformer and MTP layer is recomputed in one of these modes, False if none is.

    Raises `BadInput`, which begins with the format's `name` and names the `setting`, if only some are.
    """
    runs = [run for stage in model.stages for run in stage.runs if run.role in (Role.TRANSFORMER, Role.MTP)]
    total = sum(run.layers for run in runs)
    number = sum(run.recomputed.get(mode, 0) for run in runs for mode in modes)
    if number in (0, total):
        return bool(number)
    raise BadInput(f"{name}: not supported: {number} of {total} layers recomputed; {setting} is for all layers or none")
