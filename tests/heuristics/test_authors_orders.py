"""Chimera's and Hanayo's orders as published code gives them, kept as data, against ours."""

from __future__ import annotations

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem import placement
from pipesched.problem.passes import BW, F
from tests.heuristics.test_every_heuristic import alike

# What the authors' generator gives (AutoGeneratePipelineRank, chimera_pipeline_rank.py of github.com/Shigangli/Chimera,
# commit 06d9c8f, two pipelines), run for p stages and m micro-batches, a row a device: F and B of the pipeline down
# the devices, f and b of the one up, each with the number of the micro-batch in its pipeline (the generator's own
# numbers start again in every unit). Where p does not divide m it sends the rest down only; here a direction is a
# model replica and both get equal shares. For p = 2 it stops after the first unit.
CHIMERA = {
    (2, 2): ["F0f0b0B0", "f0F0B0b0"],
    (4, 8): [
        "F0F1f0b0f1b1B0F2B1F3f2b2f3b3B2B3",
        "F0f0F1f1b0B0b1B1F2f2F3f3b2B2b3B3",
        "f0F0f1F1B0b0B1b1f2F2f3F3B2b2B3b3",
        "f0f1F0B0F1B1b0f2b1f3F2B2F3B3b2b3",
    ],
    (6, 12): [
        "F0F1F2f0b0f1b1f2b2B0F3B1F4B2F5f3b3f4b4f5b5B3B4B5",
        "F0F1f0F2f1b0f2b1B0b2B1F3B2F4f3F5f4b3f5b4B3b5B4B5",
        "F0f0F1f1F2f2b0B0b1B1b2B2F3f3F4f4F5f5b3B3b4B4b5B5",
        "f0F0f1F1f2F2B0b0B1b1B2b2f3F3f4F4f5F5B3b3B4b4B5b5",
        "f0f1F0f2F1B0F2B1b0B2b1f3b2f4F3f5F4B3F5B4b3B5b4b5",
        "f0f1f2F0B0F1B1F2B2b0f3b1f4b2f5F3B3F4B4F5B5b3b4b5",
    ],
    (8, 8): [
        "F0F1F2F3f0b0f1b1f2b2f3b3B0B1B2B3", "F0F1F2f0F3f1b0f2b1f3b2B0b3B1B2B3", "F0F1f0F2f1F3f2b0f3b1B0b2B1b3B2B3",
        "F0f0F1f1F2f2F3f3b0B0b1B1b2B2b3B3", "f0F0f1F1f2F2f3F3B0b0B1b1B2b2B3b3", "f0f1F0f2F1f3F2B0F3B1b0B2b1B3b2b3",
        "f0f1f2F0f3F1B0F2B1F3B2b0B3b1b2b3", "f0f1f2f3F0B0F1B1F2B2F3B3b0b1b2b3",
    ],
}  # fmt: skip

# Hanayo's authors published no generator that could be found. Two readings of the paper (arXiv 2308.15762) by others
# give the same order of one unit of p micro-batches: generate_hanayo_schedule in elf/scheduling/schedulers.py of
# github.com/topal-team/elf, commit 0f14508, and a simulator that sets the paper's restricted zones slot by slot. For
# p devices, v chunks a device and m = p micro-batches. How units follow each other the paper leaves open, and the two
# differ: the first starts the next unit's forwards before the first backward, at twice the activations.
HANAYO = {
    (3, 2): [
        "F0.0 F0.1 F0.2 F5.0 BW5.0 F5.1 BW5.1 F5.2 BW5.2 BW0.0 BW0.1 BW0.2",
        "F1.0 F1.1 F4.0 F1.2 F4.1 BW4.0 F4.2 BW4.1 BW1.0 BW4.2 BW1.1 BW1.2",
        "F2.0 F3.0 F2.1 F3.1 F2.2 F3.2 BW3.0 BW2.0 BW3.1 BW2.1 BW3.2 BW2.2",
    ],
    (4, 2): [
        "F0.0 F0.1 F0.2 F0.3 F7.0 BW7.0 F7.1 BW7.1 F7.2 BW7.2 F7.3 BW7.3 BW0.0 BW0.1 BW0.2 BW0.3",
        "F1.0 F1.1 F1.2 F6.0 F1.3 F6.1 BW6.0 F6.2 BW6.1 F6.3 BW6.2 BW1.0 BW6.3 BW1.1 BW1.2 BW1.3",
        "F2.0 F2.1 F5.0 F2.2 F5.1 F2.3 F5.2 BW5.0 F5.3 BW5.1 BW2.0 BW5.2 BW2.1 BW5.3 BW2.2 BW2.3",
        "F3.0 F4.0 F3.1 F4.1 F3.2 F4.2 F3.3 F4.3 BW4.0 BW3.0 BW4.1 BW3.1 BW4.2 BW3.2 BW4.3 BW3.3",
    ],
    (3, 4): [
        "F0.0 F0.1 F0.2 F5.0 F6.0 F5.1 F6.1 F5.2 F6.2 F11.0 BW11.0 F11.1 BW11.1 F11.2 BW11.2 BW6.0 BW5.0 BW6.1 BW5.1 BW6.2 BW5.2 BW0.0 BW0.1 BW0.2",
        "F1.0 F1.1 F4.0 F1.2 F4.1 F7.0 F4.2 F7.1 F10.0 F7.2 F10.1 BW10.0 F10.2 BW10.1 BW7.0 BW10.2 BW7.1 BW4.0 BW7.2 BW4.1 BW1.0 BW4.2 BW1.1 BW1.2",
        "F2.0 F3.0 F2.1 F3.1 F2.2 F3.2 F8.0 F9.0 F8.1 F9.1 F8.2 F9.2 BW9.0 BW8.0 BW9.1 BW8.1 BW9.2 BW8.2 BW3.0 BW2.0 BW3.1 BW2.1 BW3.2 BW2.2",
    ],
}


@pytest.mark.parametrize(("p", "m"), CHIMERA)
def test_chimera_is_what_the_authors_generator_gives(p: int, m: int) -> None:
    schedule = HEURISTICS["chimera"].order(alike(placement.bidirectional(p), m, 1, 1, None))
    for device, row in enumerate(CHIMERA[p, m]):
        ours = [
            ("FB" if q.stage < p else "fb")[q.kind is BW] + str(q.microbatch % (m // 2))
            for q in schedule.passes_on(device)
        ]
        assert "".join(ours) == row
        assert all(q.kind in (F, BW) for q in schedule.passes_on(device))


@pytest.mark.parametrize(("p", "v"), HANAYO)
def test_a_unit_of_hanayo_is_what_two_readings_of_the_paper_give(p: int, v: int) -> None:
    """Also of several units directly behind each other, as Chimera's."""
    alone = HEURISTICS["hanayo"].order(alike(placement.wave(p, v), p, 1, 1, None))
    assert [" ".join(map(str, alone.passes_on(device))) for device in range(p)] == HANAYO[p, v]
    schedule = HEURISTICS["hanayo"].order(alike(placement.wave(p, v), 3 * p, 1, 1, None))
    for device in range(p):
        for number in range(3):
            own = [q for q in schedule.passes_on(device) if q.microbatch // p == number]
            assert " ".join(str(q._replace(microbatch=q.microbatch % p)) for q in own) == HANAYO[p, v][device]
