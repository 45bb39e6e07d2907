"""Modules: stages outside the main stages (the trunk) that feed these, such as a vision encoder, or a shared head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.features.catalogue import (
    FEATURES,
    Attached,
    AttachedProblems,
    Feature,
    FeatureKeys,
    Plain,
    ProblemForm,
)
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, field, whole_number
from pipesched.files.fields.parameter_sections import ParametersSection
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.stage_placement import placement_of, stage_count
from pipesched.files.fields.together import OVERLAP_NEXT, Part, Refused, at, given, of_value
from pipesched.files.schema_errors import parse_model, shown
from pipesched.problem.chains.with_modules import with_modules
from pipesched.problem.features.chain_arcs import NO_ARCS
from pipesched.problem.features.module import Module
from pipesched.problem.features.parameters import OWN_PARAMETERS
from pipesched.problem.features.walks import ALIKE
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId

_KEY = "modules"
REPLICATED: Literal["replicated"] = "replicated"
SHARED: Literal["shared"] = "shared"
# The devices of the stages of each copy; or each device holds a copy, or a part.
Copies = list[list[DeviceId]] | Literal["replicated", "shared"]
REQUIRED = ("times", "times.forward", "times.backward")

_DEVICES: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}


def _numbers(value: object) -> list[int] | None:
    found = [number for entry in as_list(value) or () if (number := whole_number(0)(entry)) is not None]
    return found if found and len(found) == len(as_list(value) or ()) else None


def _copies(value: object) -> Copies | None:
    if value in (REPLICATED, SHARED):
        return value
    entries = as_list(value)
    if entries and all(as_list(entry) is not None for entry in entries):
        rows = [_numbers(entry) for entry in entries]
        found = [row for row in rows if row is not None]
        alike = len({len(row) for row in found}) == 1
        return found if alike and len(found) == len(rows) else None
    one = _numbers(value)
    return None if one is None else [one]


def _fed(value: object) -> list[int] | None:
    single = whole_number(0)(value)
    found = _numbers(value) if single is None else [single]
    return None if found is None or len(set(found)) < len(found) else found


class ModuleTimes(Section):
    """Durations of a module's passes: a number for all of its stages, or a list with one for each."""

    forward: field_types.Numbers | None = Field(None, description="forward pass (F)")
    backward: field_types.Numbers | None = Field(None, description="backward for the input (B); without weight: full")
    weight: field_types.Numbers | None = Field(None, description="backward for the weights (W), as for the trunk")
    fused: field_types.Numbers | None = Field(None, description="full backward in one go; default backward + weight")
    transfer: field_types.Numbers | None = Field(
        None, description="from its stage to the next or to the trunk, and back, besides that of a link; default 0"
    )


class ModuleMemory(Section):
    """Memory of a module's passes, in the unit of `memory`."""

    activation: field_types.Numbers | None = Field(None, description="taken when F starts; default 1")
    freed_by_backward: field_types.SignedNumbers | None = Field(None, description="given back when B ends; default 0")
    static: field_types.Numbers | None = Field(None, description="always held, for each stage; default 0")


class ModuleSection(Section):
    """Stages outside the model's main ones (the trunk): a module that feeds stages of it, or a shared head.

    The backward of a module follows that of the stages that it `feeds`; that of a head is before that of the stage that
    it `follows`, which needs `barriers` and placement `shared`. `times` with forward and backward are required.
    """

    placement: (
        Annotated[
            Copies,
            field(
                "a list of devices, one a stage; a list of such lists, one a copy, all as long; replicated; or shared",
                _copies,
                {"anyOf": [{"enum": [REPLICATED, SHARED]}, _DEVICES, {"type": "array", "items": _DEVICES}]},
            ),
        ]
        | None
    ) = Field(
        None,
        description="the device of each stage; copies take passes in turn; shared: each device runs a part of every "
        "pass; default: all stages on device 0",
    )
    stages: field_types.Count | None = Field(None, description="stages of each copy; default: as placement lists, or 1")
    feeds: Annotated[
        list[int],
        field("a stage, or a list of different stages", _fed, {"anyOf": [{"type": "integer", "minimum": 0}, _DEVICES]}),
    ] = Field([0], description="the stages of the trunk that need its output")
    follows: Annotated[int, field("a stage", whole_number(0), {"type": "integer", "minimum": 0})] | None = Field(
        None,
        description="instead of feeds, of a shared head: the stage of the trunk whose forward comes before its own, "
        "and whose backward after",
    )
    barriers: (
        Annotated[
            int,
            field(
                "1 or 2", lambda value: value if value in (1, 2) and whole_number(1)(value) else None, {"enum": [1, 2]}
            ),
        ]
        | None
    ) = Field(
        None,
        description="of a head: 2, after its forwards and after its backwards; 1, after its forwards alone, which "
        "compute the gradient of the input, too",
    )
    serves: field_types.Count = Field(1, description="micro-batches of the trunk that one pass is for")
    frozen: field_types.YesOrNo = Field(
        False, description="its stages run forwards alone; needed where it feeds frozen stages; default false"
    )
    times: ModuleTimes | None = None
    memory: ModuleMemory | None = None
    parameters: ParametersSection | None = Field(
        None, description="what its stages run once an iteration for their own, where the trunk's run something too"
    )


class Keys(FeatureKeys):
    """The key `modules`: modules by name."""

    modules: dict[str, ModuleSection] | None = Field(
        None, description="stages of their own that feed the others, such as a vision encoder, by name"
    )


def _documents(value: object, trunk: ProblemForm, wrong: WrongPaths, plain: Plain) -> tuple[list[Attached], list[str]]:
    """Return a problem document for each module without mistakes in the key's `value`, and every mistake there.

    A module's document is that of a whole model, whose stages are numbered from 0; in its `Module` they follow those of
    the trunk. Both are empty where the trunk's own number of stages is unknown.
    """
    if not isinstance(value, Mapping) or not value:
        return [], [f"{_KEY}: found {shown(value)}; allowed: names of modules, each with its keys"]
    stages = None if wrong & {"devices", "placement", "chunks"} else stage_count(trunk)
    if stages is None or trunk.devices is None or trunk.microbatches is None:
        return [], []
    read, found = list[Attached](), list[str]()
    first = stages
    for name, section in value.items():
        own, mistaken = _one(str(name), section, trunk, first, plain)
        found += [f"{_KEY}.{name}.{mistake}" for mistake in mistaken]
        if own is not None:
            read.append(own)
            first += own.of.stages * own.of.copies
    return read, found


def _one(
    name: str, section: object, trunk: ProblemForm, first: StageId, plain: Plain
) -> tuple[Attached | None, list[str]]:
    """Return a module, given its name and section, as an attached document (None if wrong), and its mistakes.

    Its stages are numbered from `first`.
    """
    try:
        section = _in_plain_numbers(section, trunk, plain)
        keys, found, _ = parse_model(ModuleSection, section, REQUIRED)
    except BadInput as error:
        return None, list(error.mistakes)
    if found:
        return None, found
    copies = [[0] * (keys.stages or 1)] if keys.placement is None else keys.placement
    if copies in (REPLICATED, SHARED):
        copies = [[device] * (keys.stages or 1) for device in range(trunk.devices)]
    assert isinstance(copies, list)
    found = [*_wrong(keys, copies, trunk, first), *_wrong_parameters(keys, trunk)]
    if found:
        return None, found
    passes = trunk.microbatches // keys.serves
    fed = tuple(keys.feeds) if keys.follows is None else (keys.follows,)
    shared, barriers = keys.placement == SHARED, keys.barriers or 0
    module = Module(name, first, len(copies[0]), len(copies), fed, keys.serves, shared, barriers)
    return Attached(f"{_KEY}.{name}", module, _document(keys, section, copies, trunk, passes)), []


def _in_plain_numbers(section: object, trunk: ProblemForm, plain: Plain) -> object:
    """Return a module's section with values with units as plain numbers, in the file's units of time and memory."""
    if not isinstance(section, Mapping):
        return section
    unit = {"unit": trunk.memory.unit} if trunk.memory else {}
    memory = section.get("memory")
    more = memory if isinstance(memory, dict) else {}
    own = {"time_unit": trunk.time_unit, "times": section.get("times"), "memory": unit | more}
    numbers = plain(own | {"parameters": section.get("parameters")})
    found = dict(section) | {key: numbers[key] for key in ("times", "parameters")}
    return found | {"memory": {key: numbers["memory"][key] for key in memory}} if isinstance(memory, dict) else found


def _wrong(keys: ModuleSection, copies: list[list[DeviceId]], trunk: ProblemForm, first: StageId) -> Iterator[str]:
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


def _wrongly_frozen(keys: ModuleSection, trunk: ProblemForm) -> Iterator[str]:
    """Yield mistakes of `frozen`: true for a module that follows the trunk, or false for one that feeds frozen stages.

    Gradients begin at a head, so it is never frozen; a module before frozen stages gets no gradient, so it always is.
    """
    frozen = placement_of(trunk).chains[0][: getattr(trunk, "frozen", None) or 0]
    if keys.frozen and keys.follows is not None:
        yield "frozen: found true with follows; allowed: false, since gradients begin at a head"
    elif keys.follows is None and not keys.frozen and (fed := sorted({*keys.feeds} & {*frozen})):
        yield f"feeds: found stage {fed[0]}, which is frozen; allowed: a stage that trains, or frozen: true"


def _wrong_parameters(keys: ModuleSection, trunk: ProblemForm) -> Iterator[str]:
    if keys.parameters is None:
        return
    if getattr(trunk, "parameters", None) is None:
        yield "parameters: found without parameters of the trunk; allowed: with these"
    gather = keys.parameters.gather
    if gather and gather.most is not None:
        yield f"parameters.gather.most: found {gather.most}; allowed: parameters.gather.most of the file, of all stages"
    if gather and gather.window is not None:
        yield "parameters.gather.keep: found a window; allowed: free or always; a window of the trunk is for all stages"


def _document(
    keys: ModuleSection, section: Any, copies: list[list[DeviceId]], trunk: ProblemForm, passes: int
) -> dict[str, Any]:
    """Return the problem document of a module's stages, all copies one after the other.

    `section` has the module's keys as written, `copies` the devices of each copy's stages. A list of values is given
    for one copy and repeated for the others. `passes` are those of the module in an iteration.
    """

    def each(values: Mapping[str, Any] | None) -> dict[str, Any]:
        found = {key: value for key, value in (values or {}).items() if value is not None}
        return {key: [*rows] * len(copies) if (rows := as_list(value)) is not None else value
                for key, value in found.items()}  # fmt: skip

    where, memory = [device for copy in copies for device in copy], each(section.get("memory"))
    static = keys.memory.static if keys.memory else None
    if static is not None:
        own = static * len(copies) if isinstance(static, list) else [static] * len(where)
        devices = range(trunk.devices)
        memory["static"] = [sum((own[n] for n, at in enumerate(where) if at == one), Fraction(0)) for one in devices]
    return {
        "devices": trunk.devices,
        "microbatches": passes,
        "placement": where,
        "time_unit": trunk.time_unit,
        "times": each(section["times"]),
        "memory": {"unit": trunk.memory.unit if trunk.memory else "activations"} | memory,
        "parameters": section.get("parameters"),
        "frozen": len(where) if keys.frozen else None,
        "objective": trunk.objective if keys.parameters else "makespan",
    }


def _idle(trunk: ProblemForm, forms: Sequence[ProblemForm]) -> Iterator[str]:
    """Yield one mistake, on the first device that has neither a stage of the trunk nor one of a module, if any.

    `trunk` and `forms` are the parsed keys of the file and of its modules.
    """
    used = {device for form in (trunk, *forms) for device in placement_of(form).stage_device}
    if idle := sorted(set(range(trunk.devices)) - used):
        yield f"placement: found no stage on device {idle[0]}, nor a module; allowed: something on each device"


def _written(problem: Problem, write: Callable[[Problem], dict[str, Any]]) -> dict[str, Any]:
    """Return the document of a problem with modules: the trunk, and a section for each module.

    Static memory of modules is written with the trunk's, by device.
    """
    where, chain = problem.placement, problem.placement.chains[0]
    alone = replace(problem, walks=ALIKE, chain_arcs=NO_ARCS)
    trunk = replace(
        alone,
        placement=Placement("", where.devices, where.stage_device[: len(chain)], (chain,)),
        microbatches=len(problem.walking[0]),
        stages=problem.stages[: len(chain)],
    )
    alone = replace(alone, pools=(), links=(), parameters=OWN_PARAMETERS)
    return write(trunk) | {_KEY: {one.name: _section(alone, one, write) for one in problem.chain_arcs.modules}}


def _section(problem: Problem, module: Module, write: Callable[[Problem], dict[str, Any]]) -> dict[str, object]:
    """Return the keys of one module in a file: costs of the stages of its first copy, placement, links to the trunk."""
    where, stages = problem.placement, slice(module.first, module.first + module.stages)
    places = [[where.stage_device[stage] for stage in chain] for chain in module.chains]
    own = Placement("", where.devices, where.stage_device[stages], (tuple(range(module.stages)),))
    document = write(replace(problem, placement=own, stages=problem.stages[stages]))
    head = {"follows": module.feeds[0], "barriers": module.barriers}
    return {
        "placement": "shared" if module.shared else places if module.copies > 1 else places[0],
        **(head if module.barriers else {"feeds": list(module.feeds)}),
        "serves": module.serves,
        **({"frozen": True} if "frozen" in document else {}),
        "times": document["times"],
        "memory": {key: document["memory"][key] for key in ("activation", "freed_by_backward")},
        **({"parameters": document["parameters"]} if "parameters" in document else {}),
    }


def _sends(document: Mapping[str, Any]) -> bool:
    """Return True if transfers occupy a stream and passes are single tasks.

    Other pairs exclude passes of several tasks. `document` is that of a problem file.
    """
    return at(document, "times.transfer.on") is not None and document.get("tasks") is None


def _has_frozen_module(document: Mapping[str, Any]) -> bool:
    modules = document.get(_KEY)
    sections = modules.values() if isinstance(modules, Mapping) else ()
    return any(isinstance(keys, Mapping) and keys.get("frozen") is True for keys in sections)


_OWN, _EITHER = given(_KEY), "one of the two"
_SENDING = Part("times.transfer.on", "times.transfer.on", _sends)
_FROZEN = Part(f"{_KEY}.frozen", "a frozen module", _has_frozen_module)
_SPANS = "frozen passes end a span when gradients return"
_ONE_CHAIN = "such micro-batches are chains already"
_REFUSED = (
    Refused(given("chains"), _OWN, _EITHER, _ONE_CHAIN),
    Refused(given("tasks"), _OWN, _EITHER, "passes of modules are one task each"),
    Refused(given("times.overlapped"), _OWN, _EITHER, "which passes of a module may be in a block has no key"),
    Refused(of_value("placement", "bidirectional"), _OWN, "placements that hold each stage once",
            "a module feeds one copy of a stage"),
    Refused(_SENDING, _OWN, "transfers that occupy no stream", "transfers of modules occupy none"),
    Refused(of_value("objective", "span"), _FROZEN, "makespan or period", _SPANS),
    Refused(OVERLAP_NEXT, _FROZEN, _EITHER, _SPANS),
    Refused(of_value("objective", "period"), _OWN, "makespan or span", "no part of such a schedule repeats"),
)  # fmt: skip

FEATURES.register(
    Feature(
        name=_KEY,
        keys=Keys,
        attached=AttachedProblems(_documents, with_modules, _idle, _written),
        refused=_REFUSED,
        present_in=lambda problem: bool(problem.chain_arcs.modules),
        not_expressible="modules feed the trunk, and this format is for one chain of stages",
        runs_in_torch=False,
    )
)
