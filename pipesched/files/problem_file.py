"""Reading of problem files: conversion of a document into a `Problem` in integer ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import sizes_of, with_each_size
from pipesched.files.exact_numbers import read_json, read_yaml
from pipesched.files.features.catalogue import (
    AttachedProblems,
    Feature,
    SeveralProblems,
    excluded_pairs,
    features_of,
    refused_with_value,
)
from pipesched.files.fields.link_times import latency_of, stream_of, unused_diagonal
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.stage_placement import placement_of
from pipesched.files.fields.together import refused_together
from pipesched.files.file_names import stem_of, uncompressed
from pipesched.files.other_kinds import FileKind, refuse_other_kinds
from pipesched.files.problems import visualiser_file
from pipesched.files.problems.checks import WITHOUT_PARAMETERS, mistakes
from pipesched.files.problems.memory_in_steps import memory_in_steps
from pipesched.files.problems.schema import MemorySection, ProblemFile, Times, required
from pipesched.files.problems.stages import stages_from
from pipesched.files.problems.times_in_ticks import times_in_ticks
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import PROBLEM
from pipesched.files.rounding import MOST_STEPS
from pipesched.files.schema_errors import parse_model
from pipesched.files.text_file import read_text
from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.features.gather_each_pass import gathers_each_pass
from pipesched.problem.objective import OBJECTIVES
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.units import Units

ROUNDED = (
    "numbers with more digits than exact 64-bit sums allow were rounded: {}; all that is found and proved is about "
    "the rounded numbers"
)


def read_problem(path: str | Path) -> Problem:
    """Read a YAML or JSON problem file, or a configuration of the older visualiser; `BadInput` lists every mistake."""
    return problem_in(read_document(path), path)


def problem_in(document: object, path: str | Path) -> Problem:
    """Return the problem of the file at `path` with this content, which is not read again: a pipe is read once only.

    `BadInput` lists every mistake.
    """
    return problem_from(converted_document(document, str(path)), str(path), stem_of(path))


def converted_document(document: object, source: str) -> object:
    """Return a document as that of a problem file: a configuration of the older visualiser is converted.

    `BadInput` for a document of another kind. `source` names it in messages.
    """
    kind = refuse_other_kinds(document, source, FileKind.PROBLEM)
    return visualiser_file.to_problem_document(document, source) if kind is FileKind.VISUALISER else document


def read_problem_sizes(path: str | Path) -> list[tuple[Problem, int | None]]:
    """Return (problem, sequences of a micro-batch) for each micro-batch size that a problem file lists, in its order.

    The sequences are None where the file does not say `batch.size`, and for a file that lists no sizes, which gives one
    problem. `BadInput` lists every mistake.
    """
    document = read_document(path)
    if sizes_of(document, str(path)) is None:
        return [(problem_in(document, path), None)]
    refuse_other_kinds(document, path, FileKind.PROBLEM)
    return [
        (problem_from(one, str(path), stem_of(path)), sequences)
        for one, sequences in with_each_size(document, str(path))
    ]


def read_document(path: str | Path) -> object:
    """Return the content of a YAML or JSON file, with exact decimals, decompressed if its name ends in .gz.

    `BadInput` if it cannot be read.
    """
    if not isinstance(path, str | PathLike):
        raise BadInput(f"found {type(path).__name__}; allowed: the path of a file")
    text = read_text(path)
    if not text.strip():
        raise BadInput(f"{path}: the file is empty")
    is_json = uncompressed(Path(path)).suffix.lower() == ".json"
    return read_json(text, str(path)) if is_json else read_yaml(text, str(path))


def problem_from(
    document: object, source: str = "problem", default_name: str = "problem", most_steps: int = MOST_STEPS
) -> Problem:
    """Read a problem from a dictionary with the keys of a problem file; `BadInput` lists every mistake.

    `source` names the document in messages. Times become whole ticks, the largest that divide all of them, and memory
    whole steps; they are rounded, with a note, if the sum of all would exceed `most_steps` of these. The problem has
    the name `default_name` if the document gives none.
    """
    try:
        whole = in_plain_numbers(document, PROBLEM)
        features = features_of(whole)
        document, attached, value = _split_off(features, whole)
        for feature in features:
            document = feature.rewritten(document) if isinstance(document, Mapping) else document
        several, documents, found = _documents(features, document)
        wrong_keys = set[str]()
        forms, others = list[_Form](), list[tuple[Any, _Form]]()
        for one in documents:
            form, wrong_values, wrong = _parsed(one)
            found += [*wrong_values, *mistakes(*form, wrong, len(documents), attached is not None)]
            wrong_keys |= wrong
            forms.append(form)
            if attached is not None:
                others, in_others = _read_attached(attached, value, form.keys, wrong)
                found += in_others
                found += [] if found else attached.idle(form.keys, [other.keys for _, other in others])
        found += refused_together(excluded_pairs(features), whole, frozenset(wrong_keys)) if features else ()
    except BadInput as error:
        raise BadInput(*(f"{source}: {mistake}" for mistake in error.mistakes)) from None
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in dict.fromkeys(found)))
    try:
        built = [_build(form, default_name, most_steps) for form in forms]
        trunk = several.join(built) if several else built[0]
        joined = [(of, _build(form, default_name, most_steps)) for of, form in others]
        problem = attached.join(trunk, joined) if attached else trunk
        for feature in features:
            problem = feature.joined.lower(problem, forms[0].keys) if feature.joined else problem
        return problem
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None


class _Form(NamedTuple):
    """The keys of a document of one problem, and the features that it has."""

    keys: ProblemFile
    features: list[Feature]


def _parsed(document: object) -> tuple[_Form, list[str], frozenset[str]]:
    """Return the form of a document of one problem, a line for each wrong value, and the key paths of these values."""
    keys, found, wrong = parse_model(ProblemFile, document, required(document))
    return _Form(keys, features_of(document)), found, wrong


def _documents(features: list[Feature], document: object) -> tuple[SeveralProblems | None, list[object], list[str]]:
    """Return the feature by which a document stands for several problems, a document for each of them, and mistakes.

    Without such a feature, None and the document alone.
    """
    for feature in features:
        if feature.several and isinstance(document, Mapping) and document.get(feature.name) is not None:
            return feature.several, *feature.several.documents(document)
    return None, [document], []


def _split_off(features: list[Feature], document: object) -> tuple[object, AttachedProblems | None, object]:
    """Return a document's other keys, the feature with which it attaches problems, and the value of that feature's key.

    Without such a feature, the document itself and None twice.
    """
    for feature in features:
        if feature.attached and isinstance(document, Mapping) and document.get(feature.name) is not None:
            left = {key: value for key, value in document.items() if key != feature.name}
            return left, feature.attached, document[feature.name]
    return document, None, None


def _read_attached(
    of: AttachedProblems, value: object, form: ProblemFile, wrong: WrongPaths
) -> tuple[list[tuple[Any, _Form]], list[str]]:
    """Return the forms of the documents that `of` reads from a key's `value`, and every mistake there.

    A form is in a pair after its description, the `Attached.of` of its document.
    """
    read = list[tuple[Any, _Form]]()
    documents, found = of.documents(value, form, wrong, lambda one: in_plain_numbers(one, PROBLEM))
    for path, what, one in documents:
        own, wrong_values, wrong_keys = _parsed(one)
        of_own = [*wrong_values, *mistakes(*own, wrong_keys, devices_of_others=True)]
        found += [f"{path}.{mistake}" for mistake in of_own]
        read.append((what, own))
    return read, found


def _build(parsed: _Form, default_name: str, most_steps: int) -> Problem:
    """Return the problem of a form without mistakes, with times in ticks and memory in whole steps.

    It has the name `default_name` if the form gives none. Times are rounded if the sum of all would exceed `most_steps`
    of the largest tick that divides them, and so are amounts of memory. `BadInput` for a capacity of too many steps.
    """
    form, features = parsed
    assert form.devices and form.microbatches
    where, given = placement_of(form), form.times or Times.model_validate({})
    times, links, tick, times_rounded = times_in_ticks(
        given,
        form.tasks,
        where,
        form.microbatches,
        (column for feature in features for column in feature.times(form)),
        most_steps,
    )
    section = form.memory or MemorySection.model_validate({})
    memory, pools, resolution, memory_rounded = memory_in_steps(form, features, section, where, most_steps)
    rounded = [*times_rounded, *memory_rounded]
    notes = unused_diagonal(latency_of(given.transfer))
    notes += [ROUNDED.format(" and ".join(rounded))] if rounded else []
    whole = Problem(
        where,
        form.microbatches,
        stages_from(form, features, times, memory),
        pools,
        OBJECTIVES[form.objective],
        form.name or default_name,
        Units(form.time_unit, tick, section.unit, resolution),
        links,
        DeviceResources(tuple(form.streams or ()), stream_of(given.transfer)),
        notes=tuple(notes),
    )
    for feature in features:
        whole = replace(whole, **feature.fields(whole, form, times | memory))
    for feature in features:
        whole = feature.lower(whole, form)
    return whole


def with_objective(problem: Problem, objective: Objective) -> Problem:
    """Return the problem with another objective; `BadInput` where the problem does not allow it.

    A period needs equal micro-batches; work for parameters once an iteration and the objective iteration need each
    other. A problem with work for parameters is returned as it is, if the objective is an iteration: its file says if
    iterations overlap. Free memory needs a capacity of every device; the problem's own objective is then the time that
    is minimised after it.
    """
    parameters = problem.network.has_collectives or gathers_each_pass(problem.stages)
    if (objective.passes is not None) is not parameters:
        found = "with parameters" if parameters else "without parameters"
        allowed = "iteration" if parameters else WITHOUT_PARAMETERS
        raise BadInput(f"{problem.name}: objective: found {objective.name} {found}; allowed: {allowed}")
    if parameters:
        return problem  # the file says whether the next iteration overlaps
    for line in refused_with_value(problem, "objective", objective.name):
        raise BadInput(f"{problem.name}: {line}")
    if objective.leaves is not None:
        if any(pool.capacity is None for pool in problem.pools):
            raise BadInput(
                f"{problem.name}: objective: found {objective.name} without memory.capacity; allowed: with it"
            )
        objective = objective.then(problem.objective)
    return replace(problem, objective=objective)
