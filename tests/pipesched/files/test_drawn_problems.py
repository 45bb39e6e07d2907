"""Problems of every kind, at random: files keep them, formats write them or say why not; mutated ones are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hugging_face import from_hugging_face
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import ScheduleFile, schedule_from, to_text
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from runtime.running.job import job_for
from solver.construction.list_scheduling import sequential
from tests.support.collective_problems import tiny_collectives
from tests.support.makers import random_order, random_problem
from tests.support.module_problems import tiny_modules
from tests.support.nameless import nameless
from tests.support.piece_problems import tiny_pieces, tiny_saving_pieces
from tests.support.tiny_lent import tiny_lent_of_files
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory

MAKERS = (
    random_problem,
    tiny_pieces,
    tiny_saving_pieces,
    tiny_modules,
    tiny_collectives,
    tiny_memory,
    tiny_unequal_memory,
    tiny_lent_of_files,
)


@pytest.mark.parametrize("make", MAKERS)
def test_files_keep_them_and_formats_write_them_or_say_why_not(make: Callable[[Random], Problem]) -> None:
    """Their schedules are those of one micro-batch after the other, of plain passes any, with blocks."""
    kept = 0
    for seed in range(25):
        try:
            document = problem_document(make(Random(seed)))
        except ValueError:  # what differs from stage to stage as only Python can say
            continue
        one = problem_from(document, "test", "test")
        again = problem_document(one)
        assert (again, nameless(problem_from(again, "test", "test"))) == (document, nameless(one)), seed
        if why_infeasible(one) is not None:
            continue
        order = random_order(one, Random(seed), pairs=0.7) if make is random_problem else sequential(one)
        timeline = simulate(one, order)
        file = ScheduleFile(timeline)
        read = schedule_from(json.loads(to_text(file)), "test")
        assert read == file and read.timeline.schedule.orders == order.orders, seed
        assert (nameless(read.timeline.problem), read.timeline.starts) == (nameless(one), timeline.starts), seed
        kept += 1
        for write in (*(exporter.export for exporter in EXPORTERS), job_for) if kept < 6 else ():
            try:
                write(timeline)
            except BadInput as refusal:
                assert len(refusal.mistakes) == 1, seed
        for heuristic in HEURISTICS if kept < 6 else ():
            with suppress(DoesNotApply):
                broken = {found.rule for found in validate(simulate(one, heuristic.order(one)))}
                # Plain orders keep every activation.
                must_save = {"complete"} if any(not stage.may_keep for stage in one.stages) else set[str]()
                assert broken <= {"memory", "micro-batch order"} | must_save, (heuristic.name, seed)
    assert kept > 5


EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
VALUES: list[Any] = [
    None, True, 0, 2, -1, 10**300, 2**63, float("nan"), float("inf"), "", "x", "1e5", "free", "always", "comm", "period",
    [], [[]], [0], [1, 2], [None], ["a"], [[0, 1], [1, 0]], {}, {"time": 1, "on": "comm"}, "linear", "\u202e", 10**6,
]  # fmt: skip
# Small, so that each of its fields is often changed.
PLAN: dict[str, Any] = {
    "devices": 2,
    "microbatches": 4,
    "layers": [
        {"name": "a", "count": 3, "forward": 1, "backward": 2, "recompute": [{"name": "full", "time": 1, "keeps": 0}]},
        {"name": "head", "forward": 1, "backward": 2, "weight": 1, "with_previous": True},
    ],
    "decide": {"recompute": "free"},
}
CONFIG: dict[str, Any] = {
    "model_type": "deepseek_v3", "num_hidden_layers": 4, "hidden_size": 512, "intermediate_size": 1024, "vocab_size": 1000,
    "num_attention_heads": 8, "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
    "v_head_dim": 32, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "mlp_only_layers": [],
    "first_k_dense_replace": 1, "num_nextn_predict_layers": 1, "max_position_embeddings": 4096, "layer_types": [],
}  # fmt: skip
# Words of Python and of the validation library.
FOREIGN = ("Input should", "NoneType", "Fraction(", "Decimal(", "<class", "pydantic", "object at")


def mutated(document: dict[str, Any], rng: Random) -> dict[str, Any]:
    """With one to three changes anywhere in it."""
    found = copy.deepcopy(document)
    for _ in range(rng.randrange(1, 4)):
        places = list(_places(found))
        if not places:
            return found
        where, key = rng.choice(places)
        match rng.randrange(5):
            case 0:
                del where[key]
            case 1:
                other, its = rng.choice(places)
                where[key] = copy.deepcopy(other[its])
            case 2 if isinstance(where, dict):
                where[f"{key}s"] = where.pop(key)
            case 3:
                where[key] = [copy.deepcopy(where[key])] * 2
            case _:
                where[key] = copy.deepcopy(rng.choice(VALUES))
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _model(document: Any) -> object:
    return from_hugging_face(document, "config.json")


@pytest.mark.parametrize(("folder", "read"), [(".", problem_from), ("plans", plan_problem_from), ("", _model)])
def test_mutated_files_are_read_or_refused_in_lines(folder: str, read: Callable[[Any], object]) -> None:
    files = sorted((EXAMPLES / folder).glob("*.yaml"))
    documents: list[Any] = [read_yaml(path.read_text(), path.name) for path in files if path.stat().st_size < 4000]
    documents += [PLAN] * len(documents) if folder == "plans" else []
    documents = documents if folder else [CONFIG]
    refused = 0
    for seed in range(400):
        rng = Random(seed)
        try:
            read(mutated(rng.choice(documents), rng))
        except BadInput as error:
            refused += 1
            for mistake in error.mistakes:
                assert "\n" not in mistake and len(mistake) < 900, (seed, mistake)
                assert not any(word in mistake for word in FOREIGN), (seed, mistake)
    assert 100 < refused < 400
