"""Mutants of published schedules and of their closed forms."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.mutant import NamedMutant


def _form(name: str) -> tuple[str, ...]:
    """The test of the closed form of a schedule on two, three and four devices."""
    test = "tests/heuristics/test_every_heuristic.py::test_closed_form_is_what_the_simulator_finds"
    return tuple(f"{test}[{devices}-{name}]" for devices in (2, 3, 4))


SCHEDULES = (
    NamedMutant(
        "1f1b: one activation more", "heuristics/one_f_one_b.py", "min(m, p - i) *", "min(m, p - i + 1) *",
        "the peak of memory of the closed form", _form("1f1b"),
    ),
    NamedMutant(
        "interleaved 1f1b: two hops with one chunk", "heuristics/interleaved_1f1b.py",
        "hop = 2 if v > 1 else 1", "hop = 2",
        "the warm-up of a single chunk", _form("interleaved-1f1b"),
    ),
    NamedMutant(
        "interleaved 1f1b: any number of micro-batches", "heuristics/interleaved_1f1b.py",
        "cost is None or m % p:", "cost is None:",
        "the closed form of numbers that devices do not divide", _form("interleaved-1f1b"),
    ),
    NamedMutant(
        "looped bfs: nothing waits for the first micro-batch", "heuristics/looped_bfs.py",
        "(v - 1) * max(m, p)", "(v - 1) * m",
        "fewer micro-batches than devices", _form("looped-bfs"),
    ),
    NamedMutant(
        "chimera: slots of the other half", "heuristics/chimera.py", "min(d, p - 1 - d)", "min(d, p - d)",
        "the peak of memory beyond the middle device", _form("chimera"),
    ),
    NamedMutant(
        "hanayo: the last leg turns at the other end", "heuristics/hanayo.py",
        "p - d if legs % 2 else d + 1", "d + 1 if legs % 2 else p - d",
        "the peak of memory of an odd number of chunks", _form("hanayo"),
    ),
    NamedMutant(
        "zb-h1: weight passes fill one bubble more", "heuristics/zero_bubble_handcrafted.py",
        "+ (p - 1) * (cost.F + cost.B - depth * cost.W)", "+ (p - 1) * (cost.F + cost.B - (depth + 1) * cost.W)",
        "the bubble of the closed form", _form("zb-h1"),
    ),
    NamedMutant(
        "zb-h2: peak also where backwards take memory", "heuristics/zero_bubble_handcrafted.py",
        "None if network.backward_takes_memory else peak", "peak",
        "the peak of memory if B takes some", _form("zb-h2"),
    ),
    NamedMutant(
        "v-block: as many micro-batches as stages", "heuristics/v_block.py",
        "or m <= 2 * problem.devices:", "or m < problem.devices:",
        "the closed form before the pattern repeats", _form("v-block"),
    ),
)  # fmt: skip
