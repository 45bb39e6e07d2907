"""Chimera's and Hanayo's orders as published code gives them, kept as data, against ours."""

from __future__ import annotations

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem import placement
from pipesched.problem.passes import BW, F
from tests.heuristics.test_every_heuristic import alike, run

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


# What Primus' own tables run (core/pipeline_parallel/scheduler of github.com/AMD-AGI/Primus, commit fd1eeab), by its
# name, for p devices and m micro-batches: F, B and W alone, a row a device. All of p = 2 to 16 and m up to 3p + 3 were
# compared by hand.
PRIMUS = {
    ("v-half", 2, 4): [
        "F0.0 F0.1 F0.2 F3.0 B3.0 W3.0 F3.1 B3.1 B0.0 W0.0 W3.1 F3.2 F0.3 B3.2 B0.1 W0.1 W3.2 F3.3 B3.3 B0.2 W3.3 B0.3 W0.2 W0.3",
        "F1.0 F2.0 F1.1 F2.1 B2.0 W2.0 B1.0 W1.0 F1.2 F2.2 B2.1 W2.1 B1.1 W1.1 F1.3 F2.3 B2.2 B1.2 B2.3 B1.3 W2.2 W1.2 W2.3 W1.3",
    ],
    ("v-half", 3, 5): [
        "F0.0 F0.1 F0.2 F5.0 B5.0 W5.0 F5.1 B5.1 W5.1 F0.3 B0.0 W0.0 F5.2 B5.2 W5.2 B0.1 W0.1 F0.4 F5.3 B5.3 W5.3 B0.2 W0.2 F5.4 B5.4 B0.3 W5.4 W0.3 B0.4 W0.4",
        "F1.0 F1.1 F4.0 F4.1 B4.0 W4.0 F1.2 B4.1 B1.0 W1.0 W4.1 F4.2 F1.3 B1.1 B4.2 W1.1 F4.3 W4.2 F1.4 B1.2 B4.3 W1.2 F4.4 W4.3 B1.3 B4.4 W1.3 W4.4 B1.4 W1.4",
        "F2.0 F3.0 F2.1 F3.1 B3.0 W3.0 B2.0 W2.0 F2.2 F3.2 B3.1 W3.1 B2.1 W2.1 F2.3 F3.3 B3.2 W3.2 B2.2 W2.2 F2.4 F3.4 B3.3 B2.3 W3.3 W2.3 B3.4 B2.4 W3.4 W2.4",
    ],
    ("v-half", 4, 6): [
        "F0.0 F0.1 F0.2 F0.3 F0.4 F7.0 B7.0 W7.0 F7.1 B7.1 W7.1 F7.2 B7.2 W7.2 B0.0 W0.0 F0.5 F7.3 B7.3 W7.3 B0.1 W0.1 F7.4 B7.4 W7.4 B0.2 W0.2 F7.5 B7.5 B0.3 W7.5 B0.4 W0.3 W0.4 B0.5 W0.5",
        "F1.0 F1.1 F1.2 F1.3 F6.0 F6.1 B6.0 W6.0 F6.2 B6.1 W6.1 F1.4 B1.0 W1.0 B6.2 F6.3 W6.2 F1.5 B1.1 W1.1 B6.3 F6.4 W6.3 B1.2 W1.2 B6.4 F6.5 W6.4 B1.3 B6.5 B1.4 W1.3 W6.5 W1.4 B1.5 W1.5",
        "F2.0 F2.1 F2.2 F5.0 F5.1 F5.2 B5.0 W5.0 F2.3 B5.1 B2.0 W2.0 W5.1 F5.3 F2.4 B5.2 B2.1 W2.1 W5.2 F5.4 F2.5 B5.3 B2.2 W2.2 W5.3 F5.5 B5.4 B2.3 W5.4 B2.4 B5.5 W2.3 W2.4 B2.5 W5.5 W2.5",
        "F3.0 F4.0 F3.1 F4.1 F3.2 F4.2 B4.0 W4.0 B3.0 W3.0 F3.3 F4.3 B4.1 W4.1 B3.1 W3.1 F3.4 F4.4 B4.2 W4.2 B3.2 W3.2 F3.5 F4.5 B4.3 B3.3 B4.4 B3.4 W4.3 W3.3 B4.5 B3.5 W4.4 W3.4 W4.5 W3.5",
    ],
    ("v-half", 5, 2): [
        "F0.0 F0.1 F9.0 B9.0 W9.0 F9.1 B9.1 W9.1 B0.0 W0.0 B0.1 W0.1",
        "F1.0 F1.1 F8.0 F8.1 B8.0 W8.0 B8.1 W8.1 B1.0 W1.0 B1.1 W1.1",
        "F2.0 F2.1 F7.0 F7.1 B7.0 W7.0 B7.1 W7.1 B2.0 W2.0 B2.1 W2.1",
        "F3.0 F3.1 F6.0 F6.1 B6.0 W6.0 B6.1 B3.0 W3.0 W6.1 B3.1 W3.1",
        "F4.0 F5.0 F4.1 F5.1 B5.0 B4.0 W5.0 W4.0 B5.1 W5.1 B4.1 W4.1",
    ],
    ("v-min", 2, 4): [
        "F0.0 F0.1 F0.2 F3.0 B3.0 W3.0 F3.1 B0.0 W0.0 B3.1 W3.1 F0.3 B0.1 W0.1 F3.2 B3.2 W3.2 B0.2 W0.2 F3.3 B3.3 W3.3 B0.3 W0.3",
        "F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 W2.0 W1.0 F1.2 B2.1 B1.1 F2.2 W2.1 W1.1 F1.3 B2.2 B1.2 F2.3 W2.2 W1.2 B2.3 B1.3 W2.3 W1.3",
    ],
    ("v-min", 3, 5): [
        "F0.0 F0.1 F0.2 F5.0 B5.0 W5.0 F5.1 B5.1 W5.1 B0.0 W0.0 F0.3 F5.2 B5.2 B0.1 W0.1 W5.2 F0.4 F5.3 B5.3 B0.2 W0.2 W5.3 F5.4 B5.4 B0.3 W0.3 W5.4 B0.4 W0.4",
        "F1.0 F1.1 F4.0 F4.1 B4.0 W4.0 F1.2 B1.0 W1.0 B4.1 W4.1 F4.2 F1.3 B1.1 W1.1 B4.2 W4.2 F4.3 F1.4 B1.2 W1.2 B4.3 W4.3 F4.4 B1.3 B4.4 W1.3 W4.4 B1.4 W1.4",
        "F2.0 F3.0 F2.1 F3.1 B3.0 B2.0 W3.0 W2.0 F2.2 F3.2 B3.1 B2.1 W3.1 W2.1 F2.3 F3.3 B3.2 B2.2 W3.2 W2.2 F2.4 F3.4 B3.3 B2.3 W3.3 W2.3 B3.4 B2.4 W3.4 W2.4",
    ],
    ("v-min", 4, 6): [
        "F0.0 F0.1 F0.2 F7.0 B7.0 W7.0 F7.1 B7.1 W7.1 F0.3 B0.0 W0.0 F7.2 B7.2 B0.1 W7.2 W0.1 F0.4 F7.3 B7.3 B0.2 W7.3 W0.2 F0.5 F7.4 B7.4 B0.3 W7.4 W0.3 F7.5 B7.5 B0.4 W7.5 W0.4 B0.5 W0.5",
        "F1.0 F1.1 F6.0 F6.1 B6.0 W6.0 F1.2 B6.1 W6.1 B1.0 W1.0 F1.3 F6.2 B1.1 B6.2 W1.1 W6.2 F6.3 F1.4 B1.2 B6.3 W1.2 W6.3 F6.4 F1.5 B1.3 B6.4 W1.3 W6.4 F6.5 B1.4 B6.5 W1.4 W6.5 B1.5 W1.5",
        "F2.0 F2.1 F5.0 F5.1 B5.0 W5.0 F2.2 B2.0 W2.0 B5.1 W5.1 F5.2 F2.3 B2.1 W2.1 B5.2 F5.3 W5.2 B2.2 F2.4 W2.2 B5.3 F5.4 W5.3 B2.3 F2.5 W2.3 B5.4 F5.5 W5.4 B2.4 W2.4 B5.5 W5.5 B2.5 W2.5",
        "F3.0 F4.0 F3.1 F4.1 B4.0 B3.0 W4.0 W3.0 F3.2 F4.2 B4.1 B3.1 W4.1 W3.1 F3.3 F4.3 B4.2 B3.2 W4.2 W3.2 F3.4 F4.4 B4.3 B3.3 W4.3 W3.3 F3.5 F4.5 B4.4 B3.4 W4.4 W3.4 B4.5 B3.5 W4.5 W3.5",
    ],
    ("v-min", 5, 2): [
        "F0.0 F0.1 F9.0 B9.0 W9.0 F9.1 B9.1 W9.1 B0.0 W0.0 B0.1 W0.1",
        "F1.0 F1.1 F8.0 F8.1 B8.0 W8.0 B8.1 W8.1 B1.0 W1.0 B1.1 W1.1",
        "F2.0 F2.1 F7.0 F7.1 B7.0 W7.0 B7.1 W7.1 B2.0 W2.0 B2.1 W2.1",
        "F3.0 F3.1 F6.0 F6.1 B6.0 W6.0 B3.0 W3.0 B6.1 W6.1 B3.1 W3.1",
        "F4.0 F5.0 F4.1 F5.1 B5.0 B4.0 W5.0 W4.0 B5.1 B4.1 W5.1 W4.1",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "p", "m"), PRIMUS)
def test_primus_v_blocks_are_what_its_tables_run(name: str, p: int, m: int) -> None:
    schedule = HEURISTICS[f"primus-{name}"].order(alike(placement.v_shape(p), m, 1, 1, 1))
    assert [" ".join(map(str, schedule.passes_on(device))) for device in range(p)] == PRIMUS[name, p, m]


def test_primus_v_min_takes_a_slot_less_than_the_papers() -> None:
    one = alike(placement.v_shape(2), 4, 1, 1, 1)
    assert (run(one, "primus-v-min").makespan_ticks, run(one, "v-min").makespan_ticks) == (26, 27)
