"""Mistakes made by hand in crossings of all chains, and in their check."""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import HandMade, of_file

_CHAINS = "crossings of all chains, "
_PLAIN = (_CHAINS + "one backward", _CHAINS + "short full backward", _CHAINS + "links")
_BLOCKS = (_CHAINS + "blocks", _CHAINS + "blocks, many zeros", _CHAINS + "blocks, split backwards")

CHAIN_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "solver/bounds/crossing_chains/steps.py",
        (
            "the way back takes a tick longer",
            "paths.rest[stage]  # nothing",
            "paths.rest[stage] + 1  # nothing",
            _PLAIN,
        ),
        ("blocks save nothing", "work[n] + work[g] - blocks[n, g])", "0)", _BLOCKS),
    ),
    *of_file(
        "solver/bounds/crossing_chains/layers.py",
        (
            "one fewer weight pass may wait",
            "return int(room // steps.waiting[device]) if",
            "return int(max(0, room // steps.waiting[device] - 1)) if",
            (_CHAINS + "room after W", *_PLAIN),
        ),
        ("what ends a tick below the value is left out", "if end >= value:", "if end >= value - 1:", _PLAIN),
        (
            "work that ends a tick below the value is left out",
            "blocks * steps.saves[device] >= value:",
            "blocks * steps.saves[device] >= value - 1:",
            _PLAIN + _BLOCKS,
        ),
        (
            "a block takes a tick longer",
            "else steps.blocks[step, gradient]",
            "else steps.blocks[step, gradient] + 1",
            _BLOCKS,
        ),
        ("the first one stays in its place", "range(since, until - 1):", "range(since, since):", _PLAIN + _BLOCKS),
        ("a chain begins a tick later", "return int(steps.lag[step])", "return int(steps.lag[step] + 1)", _PLAIN),
    ),
    *of_file(
        "solver/bounds/crossing_chains/follow.py",
        ("what follows takes a tick longer", "rest + work\n", "rest + work + 1\n", _PLAIN + _BLOCKS),
        (
            "rows that end a tick below are left out",
            "row[entry] >= value:",
            "row[entry] >= value - 1:",
            _PLAIN + _BLOCKS,
        ),
        ("places do not move", "gone = 1 if last in (step, gradient) else 0", "gone = 0", _PLAIN + _BLOCKS),
        ("blocks leave work", "0 if gradient != NONE else steps.later[step]", "steps.later[step]", _BLOCKS),
        ("all weight passes are over", "pending * steps.longest[0]", "0 * steps.longest[0]", _PLAIN + _BLOCKS),
    ),
    *of_file(
        "solver/bounds/crossing_chains/guide.py",
        ("ways from other devices count twice", "time + guide.shift[step]", "time + 2 * guide.shift[step]", _PLAIN),
        ("what ends a tick below is left out", "row[entry] >= value:", "row[entry] >= value - 1:", _PLAIN + _BLOCKS),
    ),
    *of_file(
        "pipesched/checking/crossing_chains/alone.py",
        ("what ends a tick below is left out", "row[place] >= below:", "row[place] >= below - 1:", _PLAIN + _BLOCKS),
        ("the rest takes a tick less", "from_end + takes\n", "from_end + takes - 1\n", _PLAIN + _BLOCKS),
        ("the way from other devices is left out", "ended + alone.longer[n]", "ended", _PLAIN + _BLOCKS),
    ),
    *of_file(
        "pipesched/checking/crossing_chains/orders.py",
        (
            "what ends a tick below the value is left out",
            "elif done < below:",
            "elif done < below - 1:",
            _PLAIN,
        ),
        ("a block takes a tick longer", "else ways.together[n, g]", "else ways.together[n, g] + 1", _BLOCKS),
        ("memory of one step", "held += ways.memory[other]", "held -= ways.memory[other]", (_CHAINS + "one backward",)),
    ),
)
