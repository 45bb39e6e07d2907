"""Counts that files keep are those that the docs show: a merge may take one of the two and leave the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.proofs import bound_attack
from benchmarks.reporting.page import END, begin

ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "benchmarks/proofs"


def kept(file: str) -> Any:
    return json.loads((PROOFS / file).read_text(encoding="utf-8"))


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|") or line.endswith("problems in all.")]


def test_the_table_is_of_the_counts_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/results/bound-attack.md").read_text(encoding="utf-8")
    shown = page.partition(begin(bound_attack.COMMAND))[2].partition(END)[0]
    assert rows(shown) == rows(bound_attack.markdown(kept("bound_attack.json"), "here")) != []


def test_plans_that_were_proved_are_those_that_are_kept() -> None:
    proved = kept("plan_attack.json")["all"]["proved"]
    assert f"{proved} plans were proved in the work given" in (ROOT / "docs/proofs.md").read_text(encoding="utf-8")
