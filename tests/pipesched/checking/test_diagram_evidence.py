"""Evidence of decision diagrams is read back as it was written, and what is not written so is bad input."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipesched.errors import BadInput
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence_document import evidence_document, evidence_from

EVERY_OPTION = Diagram((0, 2, 3), 16, 1_000, (0, 2), (1,), 5, blocks=True, rounds=True, tick=Fraction(1, 4))


@pytest.mark.parametrize("one", [Diagram((0,)), EVERY_OPTION])
def test_read_back_as_written(one: Diagram) -> None:
    assert evidence_from(evidence_document(one)) == one


@pytest.mark.parametrize(("name", "value"), [("stages", 3), ("blocks", 1), ("width", None), ("guide", ["a"])])
def test_another_type_is_bad_input(name: str, value: object) -> None:
    written = evidence_document(Diagram((0,), 4))
    if value is None:  # the one key of these that may be null
        assert evidence_from(written | {name: value}) == Diagram((0,))
    else:
        with pytest.raises(BadInput, match=name):
            evidence_from(written | {name: value})
