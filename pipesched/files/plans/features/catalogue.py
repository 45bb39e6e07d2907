"""The registry of features of plan files: `PLAN_FEATURES`, to which each module of this package adds one.

Users of the registry: the file's schema and reader, the exact document that evidence has, values with units, the page
of features that exclude each other, and the notes of settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple, TypeAlias, get_args

from pydantic import create_model

from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused
from pipesched.layers.derived.shape import Shape, Training
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.training_step import TrainingStep
from pipesched.registry import Registry

# The keys of a plan file, as attributes, and the keys of one of its layers: instances of the pydantic models that
# `with_features` makes of all keys, so that type checkers do not know their classes.
PlanForm: TypeAlias = Any
LayerEntry: TypeAlias = Any


class Rounding(NamedTuple):
    """The units to which a file's numbers are rounded: times to the nearest tick, memory down to whole steps."""

    tick: Fraction
    step: Fraction

    def time(self, number: Fraction | None) -> Fraction:
        """Return a time rounded to a whole number of ticks, in the file's unit; 0 for None."""
        return round((number or Fraction(0)) / self.tick) * self.tick

    def amount(self, number: Fraction | None) -> Fraction:
        """Return memory rounded down to a whole number of steps, in the file's unit; 0 for None."""
        return floor((number or Fraction(0)) / self.step) * self.step


class Reading(NamedTuple):
    """Values that features may use when the plan problem is made: the rounding, and the layer type of an entry.

    `file` is the form of the file before any feature's `costs` changed it.
    """

    rounding: Rounding
    layer: Callable[[LayerEntry], LayerType]
    file: PlanForm


# What a file leaves open.
Choices = Sequence[Choice]
Layers = tuple[LayerType, ...]
# The exact document of a layer.
WriteLayer = Callable[[LayerType], dict[str, object]]


@dataclass(frozen=True)
class PlanFeature:
    """A feature of plan files. `form` is the file as `PlanFile`, `entry` one of its layers.

    `name` is its first key. `keys` are its top-level keys (None: it has none) and `sections` those in sections: `costs`
    of layers and of each `costs_section`, which has costs as a layer has, `layers` of layers only, `model`, `decide`,
    and of other features. `with_units` are keys whose values may have units, and those that begin with `costs.` stand
    for a key of all of these; `refused` are the features that it excludes.

    For a file with a model's shape, `model_mistakes` yields mistakes of keys that go with it, `training` returns fields
    of `Training` and `hardware` fields of `Hardware`; if there are no mistakes, `shape_mistakes` yields those that show
    in the model's shape; `derived` returns the model's layers, the training step around them, and a line for each
    mistake.

    Before the plan problem is made, in this order: `rewritten` changes other keys of the document, in plain numbers;
    `of_document` yields mistakes of the document as it was before; `filled` fills in other keys of the form and returns
    a line for each mistake; `mistakes` yields the others, given the choices that the file allows, and `layer_mistakes`
    those of the layer at a place, given the unit of memory; `costs` changes the costs of layers, and `notes` yields
    notes on it.

    Times of the file become multiples of one tick, and amounts of one step: `times` are added to each stage's,
    `layer_times` and `layer_amounts` are those of one layer, `amounts` those of a device; `parts` are parts of the
    layers' times and amounts that should be multiples too. `more_layers` are entries in addition to the model's layers,
    with their places in the file. `choices` makes several choices of one placement.

    `layer` returns fields of a `LayerType`, and `plan` the plan problem with the feature, from that of the features
    before it by name. `written` returns its keys in the exact document, given how a layer is written; `layer_written`
    those of a layer, numbers or `True`; `layers_written` returns all layers, including those that the problem has
    elsewhere. `read_back` completes the plan of such a document by keys that no file has, the `exact_keys`. `finer`
    returns how many times finer the problem's ticks and steps are than those of its layers' numbers.

    `settings_note` returns what of the plan a runtime's settings leave out, so that the job must do it; empty if
    nothing.
    """

    name: str
    keys: type[Section] | None = None
    sections: Mapping[str, type[Section]] = field(default_factory=dict)
    costs_section: str = ""
    with_units: Mapping[str, QuantityKind] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    rewritten: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda document: document
    of_document: Callable[[Mapping[str, Any], WrongPaths], Iterator[str]] = lambda *_: iter(())
    model_mistakes: Callable[[PlanForm], Iterator[str]] = lambda _: iter(())
    training: Callable[[PlanForm], Mapping[str, Any]] = lambda _: {}
    hardware: Callable[[PlanForm], Mapping[str, Any]] = lambda _: {}
    shape_mistakes: Callable[[PlanForm, Shape, Training], Iterator[str]] = lambda *_: iter(())
    derived: Callable[[PlanForm, Layers, TrainingStep], tuple[Layers, TrainingStep, list[str]]] = (
        lambda _, layers, step: (
            layers,
            step,
            [],
        )
    )
    filled: Callable[[PlanForm, WrongPaths], tuple[PlanForm, list[str]]] = lambda form, _: (form, [])
    mistakes: Callable[[PlanForm, Choices, WrongPaths], Iterator[str]] = lambda *_: iter(())
    layer_mistakes: Callable[[str, LayerEntry, str], Iterator[str]] = lambda *_: iter(())
    costs: Callable[[PlanForm], PlanForm] = lambda form: form
    notes: Callable[[PlanForm], Iterator[str]] = lambda _: iter(())
    times: Callable[[PlanForm], Iterator[Fraction]] = lambda _: iter(())
    amounts: Callable[[PlanForm], Iterator[Fraction]] = lambda _: iter(())
    layer_times: Callable[[LayerEntry, PlanForm], Iterator[Fraction | None]] = lambda *_: iter(())
    layer_amounts: Callable[[LayerEntry], Iterator[Fraction | None]] = lambda _: iter(())
    parts: Callable[[PlanForm, Choices], tuple[Sequence[Fraction], Sequence[Fraction]]] = lambda *_: ((), ())
    more_layers: Callable[[PlanForm], Iterator[tuple[str, LayerEntry]]] = lambda _: iter(())
    choices: Callable[[Choice, PlanForm], Iterator[Choice]] = lambda choice, _: iter((choice,))
    layer: Callable[[LayerEntry, PlanForm, Rounding], Mapping[str, Any]] = lambda *_: {}
    plan: Callable[[PlanProblem, PlanForm, Reading], PlanProblem] = lambda plan, *_: plan
    written: Callable[[PlanProblem, WriteLayer], Mapping[str, object]] = lambda *_: {}
    layer_written: Callable[[LayerType], Mapping[str, Any]] = lambda _: {}
    layers_written: Callable[[PlanProblem, Sequence[LayerType]], Sequence[LayerType]] = lambda _, layers: layers
    finer: Callable[[PlanProblem], tuple[int, int]] = lambda _: (1, 1)
    read_back: Callable[[PlanProblem, Mapping[str, Any]], PlanProblem] = lambda plan, _: plan
    exact_keys: frozenset[str] = frozenset()
    settings_note: Callable[[PlanProblem], str] = lambda _: ""


PLAN_FEATURES: Registry[PlanFeature] = Registry("pipesched.files.plans.features", "feature of plan files")


def excluded_pairs() -> tuple[Refused, ...]:
    """Return the pairs of features that exclude each other in a plan file."""
    return tuple(row for feature in PLAN_FEATURES for row in feature.refused)


def units_of_keys() -> dict[str, QuantityKind]:
    """Return the keys of all features whose values may have units, by path, with the kind of unit of each."""
    sections = ("layers", *(feature.costs_section for feature in PLAN_FEATURES if feature.costs_section))
    found: dict[str, QuantityKind] = {}
    for key, kind in (one for feature in PLAN_FEATURES for one in feature.with_units.items()):
        section, _, of_costs = key.partition(".")
        found |= {f"{own}.{of_costs}": kind for own in sections} if section == "costs" else {key: kind}
    return found


def with_features(name: str, section: str, common: type[Section]) -> type[Section]:
    """Return the pydantic model, called `name`, of a section of the file with the keys of all features.

    `section` is empty for the file's top level. `common` has the section's keys that no feature adds. At the top level
    the sections of features have the keys that other features add to them.
    """
    every = [*PLAN_FEATURES]
    own = [feature.sections.get(one) if one else feature.keys for feature in reversed(every) for one in _of(section)]
    bases = dict.fromkeys((*(keys for keys in own if keys is not None), common))
    fields: dict[str, Any] = {}
    for key in sorted({key for feature in every for key in feature.sections}) if not section else ():
        given = next(
            (keys.model_fields[key] for keys in bases if keys is not common and key in keys.model_fields), None
        )
        if given is not None:
            base = next(one for one in get_args(given.annotation) if issubclass(one, Section))
            fields[key] = with_features(f"{base.__name__}OfFile", key, base) | None, given
    return create_model(name, __base__=tuple(bases), __doc__=common.__doc__, **fields)


def _of(section: str) -> tuple[str, ...]:
    """Return the names under which features register keys of this section: `layers` also has the keys of `costs`."""
    return ("layers", "costs") if section == "layers" else (section,)
