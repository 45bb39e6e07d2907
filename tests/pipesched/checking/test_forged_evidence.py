"""The check of bounds on tiny problems with a known optimum: it accepts what is genuine and nothing that is false."""

from __future__ import annotations

from benchmarks.forged_evidence import ROWS, forge, markdown


def test_genuine_certificates_are_verified_and_false_claims_refused() -> None:
    tally = forge(400, seed=46, each=5)
    assert not tally.unproved
    assert not any(tally.false_accepted.values())
    assert all(tally.false_refused[kind] for kind in ROWS)
    assert sum(tally.true_refused.values()) > 10 and sum(tally.true_accepted.values()) > 2
    assert str(sum(tally.false_refused.values())) in markdown(tally, "").replace(",", "")
