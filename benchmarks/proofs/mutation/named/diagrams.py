"""Mutants of the bounds by decision diagrams and of their check."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.mutant import NamedMutant

_TESTS = ("tests/solver/diagram/test_diagrams.py",)
_STEPS = "solver/diagram/modelled_steps.py"
_PROJECTED, _REPLAY = "solver/diagram/projected_completion.py", "pipesched/checking/diagram/replay.py"
_CHAINS, _MODELS = "solver/diagram/models/chain_steps.py", "pipesched/checking/diagram/chain_steps.py"


def _unfair(sentence: str) -> tuple[str, ...]:
    """The test of the problem that is unfair to a sentence, in both objectives."""
    test = "tests/solver/diagram/test_unfair.py::test_no_more_is_claimed_or_proved_than_the_optimum"
    return tuple(f"{test}[{sentence}-{objective}]" for objective in ("makespan", "span"))


DIAGRAMS = (
    NamedMutant(
        "diagram: room for one less", _STEPS,
        "NONE if room is None else room for room in rooms",
        "NONE if room is None else max(0, room - 1) for room in rooms",
        "an order that memory admits is left out", _TESTS,
    ),
    NamedMutant(
        "diagram: no weight pass waits", _STEPS,
        "longest=int64_array([later[device_of == one].max() for one in range(len(devices))])",
        "longest=int64_array([0 for one in range(len(devices))])",
        "weight passes that memory lets wait count as done", _TESTS,
    ),
    NamedMutant(
        "diagram: a longer path between stages", _STEPS, "lag=starts - before,", "lag=starts - before + 1,",
        "the delay of stages that are not modelled is too long", _TESTS,
    ),
    NamedMutant(
        "diagram: longer blocks", _STEPS,
        "found[n, g] = NONE if ticks is None else ticks", "found[n, g] = NONE if ticks is None else ticks + 1",
        "a forward and a backward that overlap take a tick more", _TESTS,
    ),
    NamedMutant(
        "diagram: no blocks", _STEPS, "blocks = _blocks(problem, every)", "blocks = _blocks(problem, every) * 0 - 1",
        "orders with overlapped passes are left out", _TESTS,
    ),
    NamedMutant(
        "diagram: more after the last gradient", _STEPS,
        "return paths.tail(step.stage) if device is None else NOTHING",
        "return paths.tail(step.stage) + 1 if device is None else NOTHING",
        "the path back to the first stage is too long", _TESTS,
    ),
    NamedMutant(
        "diagram: earlier passes are not long ago", _STEPS,
        "past=0 if device is None else -2 * longest", "past=0",
        "passes before time 0 of a span delay the first one", _unfair("a span begins with the first pass"),
    ),
    NamedMutant(
        "diagram: more memory of forwards of the oldest micro-batch", _STEPS,
        "own[-1], takes[own].sum()", "own[-1], 2 * takes[own].sum()",
        "states from which the oldest micro-batch ends are left out", _TESTS,
    ),
    NamedMutant(
        "diagram: a block with a stage that is not modelled", _STEPS,
        "durations(problem, one.stage, sorted(mates)) for one", "durations(problem, one.stage, ()) for one",
        "passes take no less where they may overlap one of another stage", _unfair("a block is of modelled stages"),
    ),
    NamedMutant(
        "diagram: a later end", _CHAINS,
        "best = value if found.value is None else min(found.value, value)",
        "best = value if found.value is None else min(found.value + 1, value)",
        "a tick more than the least end is claimed", _TESTS,
    ),
    NamedMutant(
        "diagram: completion longer than a path", "solver/diagram/completion.py",
        "follows = steps.tail[one] if one == last else", "follows = steps.tail[one] + 1 if one == last else",
        "a label that may end in time is excluded", _TESTS,
    ),
    NamedMutant(
        "diagram: less time since a step of the smaller diagram", _PROJECTED,
        'found["gone"].append(int(kept.ends[step] - kept.ends[done[-1]]) if between else 0)',
        'found["gone"].append(int(kept.ends[step] - kept.ends[done[-1]]) - 1 if between else 0)',
        "the completion of a smaller diagram says a tick too much", _TESTS,
    ),
    NamedMutant(
        "diagram: completion of a device of which some stages are modelled", _PROJECTED,
        "(\"whole\", whole if alike else NONE), (\"late\", NONE if alike else whole)",
        "(\"whole\", whole), (\"late\", NONE)",
        "work of stages outside the smaller diagram counts as its own", _unfair("a guide has all stages of a device"),
    ),
    NamedMutant(
        "diagram: merged to the latest time", "solver/diagram/reduction.py",
        "kept[nearest, time] = min(kept[nearest, time], kept[other, time])",
        "kept[nearest, time] = max(kept[nearest, time], kept[other, time])",
        "a merged label is later than one that it stands for", _TESTS,
    ),
    NamedMutant(
        "check of diagrams: only the first ends count", _REPLAY,
        "least = least if part.end is None else min(least, part.end)",
        "least = least if part.end is None or least < limit else part.end",
        "an earlier end of a later order is not seen", _TESTS,
    ),
    NamedMutant(
        "check of diagrams: steps that end late are dropped early", _MODELS,
        "elif done < threshold:", "elif done < threshold - 1:",
        "orders that end just before the value are not followed", ("tests/pipesched/checking/test_diagram.py",),
    ),
    NamedMutant(
        "check of diagrams: repeated rounds are later by more", _MODELS,
        "(Fraction(later, back), -back, repeats * back, repeats * later)",
        "(Fraction(later, back), -back, repeats * back, repeats * later + 1)",
        "skipped rounds count a tick more than they take", _TESTS,
    ),
    NamedMutant(
        "check of diagrams: memory of younger micro-batches does not count", "pipesched/checking/diagram/moves.py",
        "(oldest < run[n] and needed > room)", "(oldest < run[n] and needed >= room)",
        "an order that memory admits is not followed", _TESTS,
    ),
    NamedMutant(
        "check of diagrams: no time of weight work that waits", "pipesched/checking/diagram/moves.py",
        "steps.weight[device] + early", "steps.weight[device] * 0 + early",
        "weight work counts as done before it is", _TESTS,
    ),
)  # fmt: skip
