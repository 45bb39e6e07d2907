"""Edits of the form in the text of a problem: what was asked is changed, and all else stays as it was typed."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from tests.support.daily import daily
from tests.support.in_turn import in_turn
from web.form import paths, values, yaml_value
from web.text_edits import with_value
from web.work.schedules import edited

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def expected(document: dict[str, Any], path: str, value: str | None) -> dict[str, Any]:
    """The document with the value at the path; a section that is left without keys goes."""
    document = copy.deepcopy(document)
    first, _, rest = path.partition(".")
    if not rest:
        if value is None:
            document.pop(first, None)
        else:
            document[first] = read_yaml(value, "value")
        return document
    held = expected(document.get(first) or {}, rest, value)
    if held or first not in document:
        return document | ({first: held} if held else {})
    del document[first]
    return document


@pytest.mark.parametrize("name", daily(sorted(path.name for path in EXAMPLES.glob("*.yaml")), 4))
def test_an_edit_changes_its_key_alone(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    document = read_yaml(text, name)
    assert isinstance(document, dict)
    rng = Random(name)
    for path in sorted(paths()):
        typed = rng.choice(["7", "1.5, 2", None])
        value = None if typed is None else yaml_value(path, typed)
        if path.startswith("times.transfer.") and not isinstance(document.get("times", {}).get("transfer", {}), dict):
            with pytest.raises(BadInput, match="`transfer` is written so"):
                with_value(text, path, value)
            continue
        changed = with_value(text, path, value)
        assert read_yaml(changed, name) == expected(document, path, value), (path, changed)
        lost = {line.partition("#")[2] for line in text.splitlines()} - {
            line.partition("#")[2] for line in changed.splitlines()
        }
        assert len(lost) <= 1, (path, lost)


@in_turn(
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
        ("", "a.b.c", "1", "a:\n  b: {c: 1}\n"),
        ("a: {x: 1}\n", "a.b.c", "1", "a: {x: 1, b: {c: 1}}\n"),
        ("x: 1\n", "a.b.c", "1", "x: 1\na: {b: {c: 1}}\n"),
        ("a:\n  b: {c: 1, d: 2}\n", "a.b.c", None, "a:\n  b: {d: 2}\n"),
        ("x: 1\na:\n  b:\n    c: 1\n", "a.b.c", None, "x: 1\n"),
        ("a:\n  x: 1\n  b: {c: 1}\n", "a.b.c", None, "a:\n  x: 1\n"),
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


@pytest.mark.parametrize("plan", [False, True])
def test_transfers_within_and_between_nodes_are_fields(plan: bool) -> None:
    """They take the place of one time for all, at the place that the file has for it, and give way to it again."""
    head = "devices: 2\nlayers: []\n" if plan else "devices: 2\n"

    def text_with(transfer: str) -> str:
        return head + (f"transfer: {transfer}\n" if plan else f"times: {{transfer: {transfer}}}\n")

    def shown(text: str) -> dict[str, str | None]:
        found = values(read_yaml(text, "text"), plan)
        return {path: value for path, value in found.items() if path.startswith("times.transfer")}

    one = text_with("5")
    assert shown(one) == {"times.transfer": "5"}
    inner = edited(one, [("times.transfer.intra_node", "1")])
    assert inner == text_with("{intra_node: 1}")
    both = edited(inner, [("times.transfer.inter_node", "5"), ("times.transfer.nodes", "0, 1")])
    assert both == text_with("{intra_node: 1, inter_node: 5, nodes: [0, 1]}")
    assert shown(both) == {
        "times.transfer.intra_node": "1", "times.transfer.inter_node": "5", "times.transfer.nodes": "0, 1",
    }  # fmt: skip
    assert edited(both, [("times.transfer", "7")]) == text_with("7")
    assert edited(both, [(f"times.transfer.{key}", "") for key in ("intra_node", "inter_node", "nodes")]) == head
    assert edited(one, [("times.transfer.nodes", "")]) == one
