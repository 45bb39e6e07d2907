"""The memory of partners together: bounds against the exact model, and the check's own rewrite of the problem."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from benchmarks.proofs.partners_memory import RAISED, compare
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.checking.relaxed.least_memory import with_least_memory
from pipesched.checking.relaxed.memory_of_partners import with_memory_of_partners
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.partners_memory import note, share_memory, sharing
from pipesched.problem.relaxed.relaxations import with_partners
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import (
    AroundDevice,
    Evidence,
    MemoryOfPartners,
    MoreMemory,
    OfRelaxed,
    OnDevice,
    Refutation,
    ResourceWeights,
    UnknownForm,
)
from pipesched.results.evidence_document import evidence_document, evidence_from
from solver.bounds.saving.certificates import certificates
from tests.support.tiny_partners import tiny_partners


def test_no_bound_of_partners_is_above_the_exact_model_and_no_forgery_passes() -> None:
    seen, features = Counter[str](), Counter[str]()
    for number in range(110):
        has, outcomes = compare(number)
        seen.update(outcomes)
        features.update(has)
    assert seen[RAISED] > 15 and seen["strongest bound attained"] > 5
    assert features["several stages a device"] and features["several chains"] and features["split backwards"]


def test_the_check_has_the_same_problem() -> None:
    """Of the solver's devices, which it does not choose itself."""
    seen = Counter[str]()
    for number in range(300):
        one = tiny_partners(Random(number))
        devices = sharing(one)
        assert (share_memory(one) is one) is (not devices)
        if devices:
            ours, theirs = (
                share_memory(one),
                with_memory_of_partners(with_least_memory(one), one, MemoryOfPartners(devices)),
            )
            assert (ours.stages, ours.room) == (theirs.stages, theirs.room)
            seen[one.placement.name] += 1
    assert len(seen) == 3 and min(seen.values()) > 5


MEMORY: dict[str, Any] = {
    "offload": {"out": 4, "in": 4, "on": "nvlink", "to": [3, 2, "host", "host"]},
    "decide": {"offload": ["free", "free", "never", "never"]},
}


def bpipe(capacity: int | list[int], **keys: object) -> Problem:
    """Four devices of which the first two move activations to the last two."""
    document: dict[str, Any] = {
        "devices": 4,
        "microbatches": 8,
        "times": {"forward": 10, "backward": 20, "transfer": 1},
        "memory": MEMORY | {"capacity": capacity},
    }
    return problem_from(document | keys)


@pytest.mark.parametrize(("capacity", "value"), [(3, 336), (2, 342), (1, 560)])
def test_the_less_memory_partners_have_together_the_higher_the_bound(capacity: int, value: int) -> None:
    one = bpipe(capacity)
    best, *_ = certificates(one, one.objective)
    assert one.in_units(best.value_ticks) == value
    assert check_bound(one, best).verdict is Verdict.VERIFIED


def test_each_partner_has_all_memory_and_what_earlier_stages_keep() -> None:
    """Unless its own limits it more."""
    found = share_memory(bpipe([3, 3, 1, 2]))
    assert (found.room, [stage.activation for stage in found.stages]) == ((5, 4, 1, 2), [1, 1, 1, 1])
    later = share_memory(bpipe([3, 3, 4, 4]))
    assert (later.room, [stage.activation for stage in later.stages]) == ((7, 7, 7, 7), [1, 1, 2, 2])


def test_partners_of_unlimited_memory_share_none() -> None:
    one = bpipe(3).with_room([3, 3, 3, None])
    assert sharing(one) == (1,) and with_partners(one.with_room([None] * 4)) is None
    assert "device 0 has partners of unlimited memory" in _refused(one, 0)
    alone = bpipe(3, memory=MEMORY | {"capacity": 3, "offload": {"out": 4, "in": 4, "to": [3, "host", "host", "host"]}})
    assert "device 2 has no partners: no activations move to it or from it" in _refused(alone, 2)


@pytest.mark.parametrize("device", [-1, 4])
def test_a_device_that_does_not_exist_is_refused(device: int) -> None:
    assert f"memory of partners of device {device}, which does not exist" in _refused(bpipe(3), device)


def _refused(one: Problem, device: int) -> str:
    """What the check says of a bound that rests on the memory of the device's partners."""
    found = check_bound(
        one, Certificate("load", 1, "", None, OfRelaxed(MemoryOfPartners((device,)), "load", OnDevice(0)))
    )
    assert found.verdict is Verdict.REFUSED
    return found.text


@pytest.mark.parametrize(
    ("capacity", "named"),
    [
        ([3, 3, 1, 2], "device 0 has the memory of devices 0 and 3, device 1 has the memory of devices 1 and 2"),
        (
            [3, 3, 4, 4],
            "devices 0 and 3 each have the memory of devices 0 and 3, "
            "devices 1 and 2 each have the memory of devices 1 and 2",
        ),
        ([3, 3, 3, None], "device 1 has the memory of devices 1 and 2"),
    ],
)
def test_certificates_name_each_device_with_its_group(capacity: list[int | None], named: str) -> None:
    assert f"take no time, and {named}, where" in note(bpipe(3).with_room(capacity))


def test_arguments_of_modes_do_not_read_it() -> None:
    claim = Certificate(
        "memory and copies", 1, "", None, OfRelaxed(MemoryOfPartners((0,)), "load", ResourceWeights(0, (1,)))
    )
    found = check_bound(bpipe(3), claim)
    assert found.verdict is Verdict.REFUSED and "modes of activations" in found.text


def test_evidence_is_read_back() -> None:
    held = OfRelaxed(MemoryOfPartners((0, 3)), "head and tail", AroundDevice(0, None, False))
    assert evidence_from(evidence_document(held)) == held


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        (Refutation(None), "memory of partners"),
        (OfRelaxed(MoreMemory((None,) * 4), "load", OnDevice(0)), "more memory within"),
        (OfRelaxed(MemoryOfPartners((0,)), "load", OnDevice(0)), "memory of partners within"),
    ],
)
def test_it_is_no_part_of_an_exhaustive_search_nor_of_a_relaxation_applied_before(inner: Evidence, why: str) -> None:
    held = OfRelaxed(MemoryOfPartners((0,)), "load", inner)
    found = check_bound(bpipe(3), Certificate("load", 1, "", None, held))
    assert found.verdict is Verdict.REFUSED and why in found.text
    written = evidence_from(evidence_document(held))
    assert isinstance(written, UnknownForm) is isinstance(inner, OfRelaxed)
