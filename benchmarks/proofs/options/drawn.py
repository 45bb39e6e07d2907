"""A drawn file in a folder, and the command line run on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.matrix.commands_of import Ran, run
from benchmarks.matrix.draw import problem_case, text_of
from benchmarks.matrix.plan_run import plan_document
from benchmarks.matrix.plan_switches import SWITCHES as OF_PLANS
from benchmarks.matrix.problem_switches import SWITCHES as OF_PROBLEMS
from benchmarks.matrix.switch import Switch, with_needed
from commands.shared.catalogue import Exit
from pipesched.errors import BadInput

# Numbers of many digits are rounded when a file is read; a state is a command's, not a file's.
_LEFT_OUT = ("17 digits", "large range", "units", "from a state", "labels")
# Seconds of a search.
SECONDS = "1"


class NotComparedError(Exception):
    """Nothing of a drawn file and option is known that an answer could be compared with."""


@dataclass
class Asked:
    """A drawn file: its folder, path, the plain document that it means, its features, and what draws the options."""

    folder: Path
    path: str
    plain: dict[str, Any]
    features: tuple[str, ...]
    random: Random

    def answer(
        self, command: str, *options: str, limits: tuple[str, ...] = ("--time-limit", SECONDS)
    ) -> dict[str, Any]:
        """Run a command on the file and return its JSON; `BadInput` where it refuses, AssertionError for a fault."""
        return answer_of(command, self.path, "--json", "--workers", "1", *limits, *options)


def answer_of(*words: str) -> dict[str, Any]:
    """Run a command and return its JSON with its exit code under `code`."""
    ran = run(*words)
    refuse_faults(ran, words)
    if ran.code == Exit.BAD_INPUT:
        raise BadInput(ran.err.strip().splitlines()[-1])
    try:
        found: Any = json.loads(ran.out)
    except ValueError:
        raise AssertionError(f"{' '.join(words)}: code {ran.code}, no JSON: {ran.out[:200]!r}") from None
    return (found if isinstance(found, dict) else {"list": found}) | {"code": ran.code}


def refuse_faults(ran: Ran, words: tuple[str, ...]) -> None:
    """AssertionError for a traceback, a defect or an exit code that no command has."""
    assert not ran.faults, f"{' '.join(words)}: {ran.faults[0]}"


def drawn(kind: str, number: int, folder: Path) -> Asked:
    """Draw a file of a kind: `problem` or `plan` with up to three features, or the shape of a `model`."""
    random = Random(f"{number} options")
    if kind == "model":
        return _model(random, folder)
    switches = OF_PROBLEMS if kind == "problem" else OF_PLANS
    names = features(switches, random)
    if kind == "problem":
        case = problem_case(names, number)
        document, plain, has = case.document, case.plain, sorted(case.switches)
    else:
        document = plain = plan_document(names, number)
        has = sorted(one.name for one in with_needed({one.name: one for one in switches}, names))
    path = folder / f"{kind}.json"
    path.write_text(text_of(document), encoding="utf-8")
    return Asked(folder, str(path), plain, tuple(has), random)


def _model(random: Random, folder: Path) -> Asked:
    """Draw a small Llama, as Hugging Face's config.json states it."""
    heads = random.choice((4, 8))
    plain = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": random.randint(1, 4),
        "hidden_size": 128 * heads,
        "intermediate_size": random.choice((1024, 4096)),
        "num_attention_heads": heads,
        "num_key_value_heads": random.choice((1, heads)),
        "vocab_size": random.choice((4096, 32000)),
        "max_position_embeddings": 2048,
        "torch_dtype": "bfloat16",
    }
    path = folder / "config.json"
    path.write_text(text_of(plain), encoding="utf-8")
    return Asked(folder, str(path), plain, (), random)


def features(switches: tuple[Switch, ...], random: Random) -> tuple[str, ...]:
    """Draw up to three features of which a file has one of each group at most."""
    known, chosen = {one.name: one for one in switches}, list[str]()
    for name in random.sample([one.name for one in switches if one.name not in _LEFT_OUT], random.choice((1, 2, 2, 3))):
        groups = [one.group for one in with_needed(known, [*chosen, name]) if one.group]
        if len(set(groups)) == len(groups):
            chosen.append(name)
    return tuple(chosen)
