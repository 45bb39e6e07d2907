"""Edits of the form in the text of a problem: what was asked is changed, and all else stays as it was typed."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from web.form import paths, values, yaml_value
from web.text_edits import with_value

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def expected(document: dict[str, Any], path: str, value: str | None) -> dict[str, Any]:
    """The document with the value at the path; a section that is left without keys goes."""
    document = copy.deepcopy(document)
    section, _, key = path.rpartition(".")
    if value is not None:
        held = document.setdefault(section, {}) if section else document
        held[key] = read_yaml(value, "value")
        return document
    held = document.get(section, {}) if section else document
    if key in held:
        del held[key]
        if section and not held:
            del document[section]
    return document


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_an_edit_changes_its_key_alone(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    document = read_yaml(text, name)
    assert isinstance(document, dict)
    rng = Random(name)
    for path in sorted(paths()):
        typed = rng.choice(["7", "1.5, 2", None])
        value = None if typed is None else yaml_value(path, typed)
        changed = with_value(text, path, value)
        assert read_yaml(changed, name) == expected(document, path, value), (path, changed)
        lost = {line.partition("#")[2] for line in text.splitlines()} - {
            line.partition("#")[2] for line in changed.splitlines()
        }
        assert len(lost) <= 1, (path, lost)


@pytest.mark.parametrize(
    ("text", "path", "value", "changed"),
    [
        ("", "times.forward", "1", "times:\n  forward: 1\n"),
        ("# mine\n", "devices", "4", "# mine\ndevices: 4\n"),
        ("devices: 2 # two\n", "devices", "4", "devices: 4 # two\n"),
        ("devices:\n", "devices", "4", "devices: 4\n"),
        ("devices:", "microbatches", "4", "devices:\nmicrobatches: 4\n"),
        ("times: {forward: 1}\n", "times.backward", "2", "times: {forward: 1, backward: 2}\n"),
        ("times: {}\n", "times.backward", "2", "times: {backward: 2}\n"),
        ("times: {forward: 1, backward: 2}\n", "times.forward", None, "times: {backward: 2}\n"),
        ("times: {forward: 1, backward: 2}\n", "times.backward", None, "times: {forward: 1}\n"),
        ("times: {forward: 1}\ndevices: 2\n", "times.forward", None, "devices: 2\n"),
        ("times:\n  forward:\n    - 1\n    - 2\n  backward: 3\n", "times.forward", "4", "times:\n  forward: 4\n  backward: 3\n"),
        ("times:\n  forward: &f [1, 2]\n  backward: *f\n", "times.backward", "3", "times:\n  forward: &f [1, 2]\n  backward: 3\n"),
        ("memory: # none yet\ndevices: 2\n", "memory.capacity", "3", "memory: {capacity: 3} # none yet\ndevices: 2\n"),
        ('{"devices": 2}', "microbatches", "3", '{"devices": 2, microbatches: 3}\n'),
    ],
)  # fmt: skip
def test_layout_and_comments_stay(text: str, path: str, value: str | None, changed: str) -> None:
    assert with_value(text, path, value) == changed


@pytest.mark.parametrize("text", ["[1, 2]\n", "a: [\n", "times: 3\n", "a: &t {forward: 1}\ntimes: *t\n", "[" * 1000])
def test_a_text_that_no_field_can_edit_is_said(text: str) -> None:
    with pytest.raises(BadInput, match="text"):
        with_value(text, "times.forward", "1")


@pytest.mark.parametrize(
    ("path", "typed", "value"),
    [
        ("devices", " 4 ", "4"),
        ("times.forward", "1, 2.5 ,3", "[1, 2.5, 3]"),
        ("times.forward", "[1,2]", "[1, 2]"),
        ("times.forward", "ten", "ten"),
        ("times.forward", "1}: *a", '"1}: *a"'),
        ("name", "12", '"12"'),
        ("name", "yes", '"yes"'),
        ("name", 'a "b" #c\n\x1b\ud800', '"a \\"b\\" #c\\U0000000a\\U0000001b\\U0000d800"'),
        ("placement", "0, 1, 1, 0", "[0, 1, 1, 0]"),
        ("placement", "v-shape", "v-shape"),
    ],
)
def test_what_is_typed_is_one_value_of_yaml(path: str, typed: str, value: str) -> None:
    assert yaml_value(path, typed) == value
    if "\ud800" not in typed:
        read_yaml(value, "value")


def test_fields_show_what_the_text_says() -> None:
    text = "devices: 2\nplacement: [0, 1]\ntimes: {forward: 1.50, transfer: [[0, 1], [1, 0]]}\nname: x\n"
    found = values(read_yaml(text, "text"))
    assert found == {"devices": "2", "placement": "0, 1", "times.forward": "1.50", "times.transfer": None, "name": "x"}
