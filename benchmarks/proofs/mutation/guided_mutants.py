"""Mistakes made by hand in what a step makes of a label, in crossings of steps of more stages, and in their check."""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import HandMade, of_file

_STEPS = "crossings of steps, "
_ALL = tuple(_STEPS + name for name in ("room after W", "V", "makespan"))
_MORE = "crossings of steps of more stages, "
_GUIDED = tuple(_MORE + name for name in ("V", "interleaved", "span", "links"))
_SPAN = (_MORE + "span",)

GUIDED_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "solver/bounds/crossing_steps/moves.py",
        ("one micro-batch more in flight", "return key % base\n", "return key % base + 1\n", _ALL),
        ("room for one unit less", "if held > room or", "if held >= room or", _ALL),
        ("the oldest counts as younger", "if oldest >= 0 and other > oldest:", "if oldest >= 0:", _ALL),
        ("one unit less for the oldest", "> room):", ">= room):", (_STEPS + "V", _STEPS + "interleaved")),
        ("one weight pass fewer may wait", "return (room - held) //", "return -1 + (room - held) //", _ALL),
        ("a way takes a tick more", "label[one] + steps.lag[step])", "label[one] + steps.lag[step] + 1)", _ALL),
        (
            "no weight pass may wait",
            "label[whole] - pending * steps.longest[steps.device[step]])",
            "label[whole])",
            _ALL,
        ),
        ("others start after the step ends", "max(label[time], start)", "max(label[time], start + 1)", _ALL),
        ("weight passes count twice", "+ steps.later[step]", "+ 2 * steps.later[step]", _ALL),
        ("a way is counted before its step", "- steps.lag[at[one]])", ")", _ALL),
        ("the last that comes", "min(soonest, label[one] + reach)", "max(soonest % NEVER, label[one] + reach)", _ALL),
        ("no more micro-batches begin", "        if more:\n", "        if False and more:\n", _ALL),
    ),
    *of_file(
        "solver/bounds/crossing_guided/guide.py",
        (
            "nothing has passed since the last step",
            "np.where(np.cumsum(within) > 0, ends - last, 0)",
            "0 * ends",
            _GUIDED,
        ),
        ("the way to the guide counts twice", "later=first + kept.beside", "later=kept.beside - first", _GUIDED),
        ("what lies beside is forgotten", "first + kept.beside - small.beside", "first", _GUIDED),
        (
            "work of other stages of a device too",
            "n + len(own) if alike else n",
            "n + len(own)",
            (*_GUIDED, _MORE + "two directions"),
        ),
    ),
    *of_file(
        "solver/bounds/crossing_guided/moves.py",
        (
            "a micro-batch at its last step there counts",
            "if passed == guide.steps:",
            "if passed > guide.steps:",
            _GUIDED,
        ),
        ("a micro-batch before its first step there counts", "if passed > 0:", "if passed >= 0:", _GUIDED),
        ("something is left out at the end", "    if done == len(guide.since) - 2:\n", "    if done < 0:\n", _GUIDED),
        (
            "the state a step before",
            "guide.since[done], guide.since[done + 1]",
            "guide.since[done - 1], guide.since[done]",
            _GUIDED,
        ),
        ("what ends a tick below the value is left out", "value + guide.later\n", "value + guide.later - 1\n", _GUIDED),
        ("another micro-batch's rest", "guide.rests[row, one - first]", "guide.rests[row, 0]", _GUIDED),
        ("what has passed since is added", "label[one] - guide.behind", "label[one] + guide.behind", _GUIDED),
    ),
    *of_file(
        "solver/bounds/crossing_guided/follow.py",
        ("in turn with one between", "at[one - 1] <= at[one]:", "at[one - 1] <= at[one] + 1:", _GUIDED),
        ("one fewer in flight", "flying == most):", "flying == most - 1):", _GUIDED),
        (
            "the oldest stays in its place",
            "                if through:\n",
            "                if False and through:\n",
            _GUIDED,
        ),
        (
            "what is left out ends later",
            "return Least(min(best, value), used)",
            "return Least(min(best, value + 1), used)",
            _GUIDED,
        ),
        (
            "the last end",
            "best, used = min(best, ended), used + seen",
            "best, used = max(best % NEVER, ended % NEVER), used + seen",
            _GUIDED,
        ),
        ("no more micro-batches begin", "now_begun < steps.microbatches, steps)", "False, steps)", _GUIDED),
    ),
    *of_file(
        "solver/bounds/crossing_guided/bound.py",
        ("tasks count as passes", "or not problem.network.one_task_each:", "or False:", ()),
        ("blocks are left out", "if problem.overlaps or problem.network", "if problem.network", ()),
        ("what lies beside counts twice", "least.ticks + own.beside)", "least.ticks + 2 * own.beside)", _GUIDED),
        (
            "another value in the evidence",
            "kept.width, value - own.beside, work",
            "kept.width, value - own.beside + 1, work",
            (),
        ),
    ),
)
