"""The registry of features of plan files: each module of this package registers one.

The schema of the file, its reader, the exact document that evidence has, values with units, the page of what does not
go together and the notes of settings read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from pydantic import create_model

from pipesched.files.fields.kind import Kind
from pipesched.files.fields.section import Section
from pipesched.files.fields.together import Refused
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.training_step import TrainingStep
from pipesched.registry import Registry


class Rounding(NamedTuple):
    """The steps of a file's numbers, in its units: times are rounded to the nearest tick, amounts down to a step."""

    tick: Fraction
    step: Fraction

    def time(self, number: Fraction | None) -> Fraction:
        """A time in whole ticks; 0 for one that the file does not give."""
        return round((number or Fraction(0)) / self.tick) * self.tick

    def amount(self, number: Fraction | None) -> Fraction:
        """Memory in whole steps; 0 for what the file does not give."""
        return floor((number or Fraction(0)) / self.step) * self.step


class Reading(NamedTuple):
    """The steps of a file's numbers, the type of a layer that an entry means, and the form before its `costs`."""

    rounding: Rounding
    layer: Callable[[Any], LayerType]
    file: Any


# What a file leaves open, and the key paths that are known as wrong.
Choices = Sequence[Choice]
Wrong = frozenset[str]
Layers = tuple[LayerType, ...]
# The exact document of a layer.
WriteLayer = Callable[[LayerType], dict[str, object]]


@dataclass(frozen=True)
class PlanFeature:
    """A feature of plan files. `form` is the file as `PlanFile` has it, `entry` one of its layers.

    `name` is its first key. `keys` are a part of the file, at its top, and `sections` parts of its sections: `costs` of
    the layers and the encoder, `layers` of the layers alone, `model`, `decide`. `with_units` are keys whose values may
    have units, `refused` the features that it does not go with.

    Of a file with a model's shape `model_mistakes` gives those of the keys that go with it, `training` fields of
    `Training` and `hardware` fields of `Hardware`; `derived` gives its layers, with what surrounds them in a step and a
    line for each mistake.

    In this order, before the plan problem is made: `rewritten` changes other keys of the document, in plain numbers;
    `of_document` gives mistakes of the document as it was before; `filled` fills other keys of the form in and gives a
    line for each mistake; `mistakes` gives the others, with the choices that the file allows, and `layer_mistakes`
    those of the layer at a place, with the unit of memory; `costs` changes what layers cost, and `notes` says so.

    Times of the file become multiples of one tick, and amounts of one step: `times` are added to each stage's,
    `layer_times` and `layer_amounts` are of one layer, `amounts` of a device; `parts` are parts of the layers' times
    and amounts that should be multiples too. `more_layers` are entries that are none of the model's layers, with their
    places in the file. `choices` makes several of a placement.

    `layer` gives the fields of a `LayerType`, and `plan` the plan problem with the feature, of that of the features
    before it by name. `written` are its keys in the exact document, given how a layer is written; `layer_written` are
    those of a layer, numbers or `True`; `layers_written` puts layers back that the problem has elsewhere. `read_back`
    completes the plan of such a document by keys that no file has, which are `exact_keys`. Ticks and steps of the
    problem are as many times finer than those of its layers' numbers as `finer` says.

    `settings_note` says what of the plan a runtime's settings do not say, and so the job must do; empty where nothing.
    """

    name: str
    keys: type[Section] | None = None
    sections: Mapping[str, type[Section]] = field(default_factory=dict)
    with_units: Mapping[str, Kind] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    rewritten: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda document: document
    of_document: Callable[[Mapping[str, Any], Wrong], Iterator[str]] = lambda *_: iter(())
    model_mistakes: Callable[[Any], Iterator[str]] = lambda _: iter(())
    training: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    hardware: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    derived: Callable[[Any, Layers, TrainingStep], tuple[Layers, TrainingStep, list[str]]] = lambda _, layers, step: (
        layers,
        step,
        [],
    )
    filled: Callable[[Any, Wrong], tuple[Any, list[str]]] = lambda form, _: (form, [])
    mistakes: Callable[[Any, Choices, Wrong], Iterator[str]] = lambda *_: iter(())
    layer_mistakes: Callable[[str, Any, str], Iterator[str]] = lambda *_: iter(())
    costs: Callable[[Any], Any] = lambda form: form
    notes: Callable[[Any], Iterator[str]] = lambda _: iter(())
    times: Callable[[Any], Iterator[Fraction]] = lambda _: iter(())
    amounts: Callable[[Any], Iterator[Fraction]] = lambda _: iter(())
    layer_times: Callable[[Any, Any], Iterator[Fraction | None]] = lambda *_: iter(())
    layer_amounts: Callable[[Any], Iterator[Fraction | None]] = lambda _: iter(())
    parts: Callable[[Any, Choices], tuple[Sequence[Fraction], Sequence[Fraction]]] = lambda *_: ((), ())
    more_layers: Callable[[Any], Iterator[tuple[str, Any]]] = lambda _: iter(())
    choices: Callable[[Choice, Any], Iterator[Choice]] = lambda choice, _: iter((choice,))
    layer: Callable[[Any, Any, Rounding], Mapping[str, Any]] = lambda *_: {}
    plan: Callable[[PlanProblem, Any, Reading], PlanProblem] = lambda plan, *_: plan
    written: Callable[[PlanProblem, WriteLayer], Mapping[str, object]] = lambda *_: {}
    layer_written: Callable[[LayerType], Mapping[str, Any]] = lambda _: {}
    layers_written: Callable[[PlanProblem, Sequence[LayerType]], Sequence[LayerType]] = lambda _, layers: layers
    finer: Callable[[PlanProblem], tuple[int, int]] = lambda _: (1, 1)
    read_back: Callable[[PlanProblem, Mapping[str, Any]], PlanProblem] = lambda plan, _: plan
    exact_keys: frozenset[str] = frozenset()
    settings_note: Callable[[PlanProblem], str] = lambda _: ""


PLAN_FEATURES: Registry[PlanFeature] = Registry("pipesched.files.plans.features", "feature of plan files")


def with_features(name: str, section: str, common: type[Section]) -> type[Section]:
    """The model of a section, empty for the file: its keys of all plans, then those of features."""
    every = [*PLAN_FEATURES]
    own = [feature.sections.get(one) if one else feature.keys for feature in reversed(every) for one in _of(section)]
    bases = dict.fromkeys((*(keys for keys in own if keys is not None), common))
    return create_model(name, __base__=tuple(bases), __doc__=common.__doc__)


def _of(section: str) -> tuple[str, ...]:
    """Layers have the keys of their costs too."""
    return ("layers", "costs") if section == "layers" else (section,)
