"""Reads the modules of a problem file: their keys, the rules over several of them, and a form for each module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.fields.stage_placement import placement_of, stage_count
from pipesched.files.problems.checks import mistakes
from pipesched.files.problems.module_keys import REPLICATED, REQUIRED, SHARED, ModuleSection
from pipesched.files.problems.schema import MemorySection, ProblemFile, Times
from pipesched.files.problems.times_in_ticks import per
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import PROBLEM
from pipesched.files.schema_errors import parse_model, shown
from pipesched.problem.features.module import Module


class ModuleForm(NamedTuple):
    """A module, and its stages as if they were all that the file describes."""

    module: Module
    form: ProblemFile


def read_modules(
    held: object, document: object, trunk: ProblemFile, wrong: frozenset[str]
) -> tuple[list[ModuleForm], list[str]]:
    """The modules of a file whose other keys are `trunk`, and every mistake in them."""
    if held is None:
        return [], []
    if not isinstance(held, Mapping) or not held:
        return [], [f"modules: found {shown(held)}; allowed: names of modules, each with its keys"]
    stages = None if wrong & {"devices", "placement", "chunks"} else stage_count(trunk)
    if stages is None or trunk.devices is None or trunk.microbatches is None:
        return [], []
    forms, found = list[ModuleForm](), list[str]()
    first = stages
    for name, section in held.items():
        form, mistaken = _one(str(name), section, document, trunk, first)
        found += [f"modules.{name}.{mistake}" for mistake in mistaken]
        if form is not None:
            forms.append(form)
            first += form.module.stages * form.module.copies
    return forms, found


def idle_devices(trunk: ProblemFile, modules: Sequence[ModuleForm]) -> Iterator[str]:
    """A mistake where a device holds no stage at all."""
    assert trunk.devices
    held = {device for form in (trunk, *(one.form for one in modules)) for device in placement_of(form).stage_device}
    if idle := sorted(set(range(trunk.devices)) - held):
        yield f"placement: found no stage on device {idle[0]}, nor a module; allowed: something on each device"


def _one(
    name: str, section: object, document: object, trunk: ProblemFile, first: int
) -> tuple[ModuleForm | None, list[str]]:
    """A module whose stages are numbered from `first` on."""
    assert trunk.devices and trunk.microbatches and isinstance(document, Mapping)
    unit = {"unit": trunk.memory.unit} if trunk.memory else {}
    try:
        if isinstance(section, Mapping):
            memory = section.get("memory")
            more = memory if isinstance(memory, dict) else {}
            own = {"time_unit": trunk.time_unit, "times": section.get("times"), "memory": unit | more}
            plain: Any = in_plain_numbers(own | {"parameters": section.get("parameters")}, PROBLEM)
            section = dict(section) | {key: plain[key] for key in ("times", "parameters")}
            if isinstance(memory, dict):
                section["memory"] = {key: plain["memory"][key] for key in memory}
        keys, found, wrong = parse_model(ModuleSection, section, REQUIRED)
    except BadInput as error:
        return None, list(error.mistakes)
    if found:
        return None, found
    copies = [[0] * (keys.stages or 1)] if keys.placement is None else keys.placement
    if copies in (REPLICATED, SHARED):
        copies = [[device] * (keys.stages or 1) for device in range(trunk.devices)]
    assert isinstance(copies, list)
    found += [*_wrong(keys, copies, trunk, first), *_wrong_parameters(keys, trunk)]
    if found:
        return None, found
    passes = trunk.microbatches // keys.serves
    fed = tuple(keys.feeds) if keys.follows is None else (keys.follows,)
    shared, barriers = keys.placement == SHARED, keys.barriers or 0
    module = Module(name, first, len(copies[0]), len(copies), fed, keys.serves, shared, barriers)
    form = _form(keys, copies, trunk, passes)
    found += mistakes(form, wrong, devices_of_others=True)
    return (None if found else ModuleForm(module, form)), found


def _wrong(keys: ModuleSection, copies: list[list[int]], trunk: ProblemFile, first: int) -> Iterator[str]:
    assert trunk.devices and trunk.microbatches
    devices, stages = [device for copy in copies for device in copy], stage_count(trunk) or first
    if keys.stages is not None and keys.stages != len(copies[0]):
        yield f"stages: found {keys.stages}; allowed: {len(copies[0])}, as many as placement lists"
    if max(devices) >= trunk.devices:
        yield f"placement: found device {max(devices)}; allowed: 0 to {trunk.devices - 1}"
    if len({device for copy in copies for device in set(copy)}) < sum(len(set(copy)) for copy in copies):
        yield "placement: found a device in two copies; allowed: each device in one"
    for key, fed in (("feeds", max(keys.feeds)), ("follows", keys.follows)):
        if fed is not None and fed >= stages:
            yield f"{key}: found stage {fed}; allowed: 0 to {stages - 1}, the stages of the trunk"
    yield from _wrongly_frozen(keys, trunk)
    shared = keys.placement == SHARED
    if (keys.follows is None) != (keys.barriers is None):
        yield "follows, barriers: found one of the two; allowed: both, of a head, or none"
    elif keys.follows is not None and not shared:
        yield f"placement: found {shown(keys.placement)} with follows; allowed: shared"
    elif keys.follows is not None and keys.serves > 1:
        yield f"serves: found {keys.serves} with follows; allowed: 1"
    if shared and keys.stages not in (None, 1):
        yield f"stages: found {keys.stages}; allowed: 1, as it is shared"
    if trunk.times and keys.times and (trunk.times.weight is None) != (keys.times.weight is None):
        yield "times.weight: allowed: given or left out as in the times of the trunk"
    if trunk.microbatches % keys.serves:
        yield f"serves: found {keys.serves}; allowed: what divides the {trunk.microbatches} micro-batches"
    elif not shared and len(copies) > trunk.microbatches // keys.serves:
        yield f"placement: found {len(copies)} copies; allowed: up to {trunk.microbatches // keys.serves}, one a pass"


def _wrongly_frozen(keys: ModuleSection, trunk: ProblemFile) -> Iterator[str]:
    """A module that frozen stages need trains nothing either; a head always needs its backward."""
    frozen = placement_of(trunk).chains[0][: getattr(trunk, "frozen", None) or 0]
    if keys.frozen and keys.follows is not None:
        yield "frozen: found true with follows; allowed: false, since gradients begin at a head"
    elif keys.follows is None and not keys.frozen and (fed := sorted({*keys.feeds} & {*frozen})):
        yield f"feeds: found stage {fed[0]}, which is frozen; allowed: a stage that trains, or frozen: true"


def _wrong_parameters(keys: ModuleSection, trunk: ProblemFile) -> Iterator[str]:
    if keys.parameters is None:
        return
    if getattr(trunk, "parameters", None) is None:
        yield "parameters: found without parameters of the trunk; allowed: with these"
    gather = keys.parameters.gather
    if gather and gather.most is not None:
        yield f"parameters.gather.most: found {gather.most}; allowed: parameters.gather.most of the file, of all stages"
    if gather and gather.window is not None:
        yield "parameters.gather.keep: found a window; allowed: free or always; a window of the trunk is for all stages"


def _form(keys: ModuleSection, copies: list[list[int]], trunk: ProblemFile, passes: int) -> ProblemFile:
    """The stages of all copies as a form of their own; a list of values is that of each copy."""

    def each(value: Any) -> Any:
        return value * len(copies) if isinstance(value, list) else value

    times, memory = keys.times, keys.memory
    assert times is not None and trunk.devices
    held = {key: each(getattr(memory, key)) for key in type(memory).model_fields} if memory else {}
    if held.get("static") is not None:
        where = [device for copy in copies for device in copy]
        own = per(held["static"], len(where))
        held["static"] = [
            sum((own[n] for n, device in enumerate(where) if device == one), Fraction(0))
            for one in range(trunk.devices)
        ]
    return ProblemFile.model_construct(
        devices=trunk.devices,
        microbatches=passes,
        placement=[device for copy in copies for device in copy],
        time_unit=trunk.time_unit,
        times=Times.model_construct(**{key: each(getattr(times, key)) for key in type(times).model_fields}),
        memory=MemorySection.model_construct(
            unit=trunk.memory.unit if trunk.memory else "activations",
            **held,
        ),
        parameters=keys.parameters,
        frozen=sum(map(len, copies)) if keys.frozen else None,
        objective=trunk.objective if keys.parameters else "makespan",
    )
