"""The attack on options: it compares, and a wrong claim of each kind is seen."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benchmarks.matrix.exact.model import Exact
from benchmarks.proofs.options import attack, of_problems
from benchmarks.proofs.options.claim import exact, holds
from benchmarks.proofs.options.drawn import drawn
from benchmarks.proofs.options.meant import for_runtime, with_capacities, without_transfers
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from runtime.exporters.restrictions import RESTRICTIONS
from targets.schedules import restricted

BEST, NONE = Exact(Fraction(10), Fraction(10)), Exact(None, None)


@pytest.mark.parametrize(
    ("answer", "best", "said"),
    [
        ({"value": 9.0, "lower_bound": 9.0}, BEST, "value 9.0 below the optimum 10.0"),
        ({"value": 12.0, "lower_bound": 11.0}, BEST, "bound 11.0 above the optimum 10.0"),
        ({"value": 12.0, "lower_bound": 10.0, "status": "optimal"}, BEST, "optimal at 12"),
        ({"value": None, "status": "infeasible"}, BEST, "infeasible, where 10.0 is possible"),
        ({"value": 12.0, "status": "feasible"}, NONE, "value 12.0, where nothing fits"),
    ],
)
def test_a_wrong_claim_is_seen(answer: dict[str, Any], best: Exact, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        holds("claim", answer, best)


def test_right_claims_are_counted() -> None:
    right = ({"value": 10.0, "lower_bound": 10.0, "status": "optimal"}, {"value": 11.5, "lower_bound": 9.0})
    assert [holds("claim", one, BEST) for one in right] == [("compared",)] * 2
    assert holds("claim", {"value": None, "lower_bound": 3.0, "status": "infeasible"}, NONE) == ("compared",)
    assert holds("claim", {"value": 1.0, "lower_bound": 0.0}, None) == ()


@pytest.mark.parametrize("name", sorted(RESTRICTIONS))
def test_the_document_of_a_runtime_is_its_restriction(name: str) -> None:
    """Of stages whose passes fused and apart take different times."""
    times = {"forward": [2, 1], "backward": [3, 1], "weight": [2, 4], "fused": [6, 4], "transfer": 1}
    document: dict[str, Any] = {"devices": 2, "microbatches": 3, "times": times}
    own = for_runtime(document, name, 2)
    assert own is not None
    theirs = restricted(problem_from(document), name)
    assert exact(own) == exact(problem_document(theirs))
    assert (exact(own) == exact(document)) == (name not in ("deepspeed", "torchtitan", "jaxpp"))


def test_documents_of_other_options() -> None:
    document: dict[str, Any] = {"devices": 2, "microbatches": 2, "times": {"forward": 1, "backward": 2, "transfer": 3}}
    rooms: list[Fraction | None] = [Fraction(1), Fraction(2)]
    assert with_capacities(document, rooms)["memory"] == {"capacity": rooms}
    direct = without_transfers(document)
    assert direct is not None and "transfer" not in direct["times"] and "transfer" in document["times"]


@pytest.mark.parametrize("option", ("solve --gap", "frontier"))
def test_a_drawn_file_is_compared_and_a_wrong_optimum_seen(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = of_problems.OPTIONS[option]
    assert "compared" in ask(drawn("problem", 2, tmp_path))
    monkeypatch.setattr(of_problems, "exact", lambda *_: Exact(Fraction(1, 100), Fraction(1, 100)))
    with pytest.raises(AssertionError, match=r"above the optimum 0\.01"):
        ask(drawn("problem", 2, tmp_path))


def test_an_option_that_a_file_does_not_take_counts_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> tuple[str, ...]:
        raise BadInput("no")

    monkeypatch.setattr(attack, "KINDS", {"problem": {"an option": refuse}})
    assert attack.compare(1) == (("all", "an option"), ("refused",))
