"""Where a search over partitions begins when memory is short: what an order needs is recomputed, and no more."""

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.files.plan_file import plan_problem_from
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.planning.partitions.balance import balanced
from solver.planning.partitions.memory_fit import MemoryFit

LAYERS = [
    {"name": "embedding", "forward": 1, "backward": 1, "memory": 4},
    {
        "name": "layer", "count": 11, "forward": 2, "backward": 4, "memory": 2, "activation": 3,
        "recompute": [{"name": "full", "time": 2, "keeps": 0}, {"name": "costly", "time": 3, "keeps": 0.5}],
    },
    {"name": "head", "forward": 3, "backward": 6, "memory": 4, "activation": 1},
]  # fmt: skip


@pytest.mark.parametrize(
    ("placement", "chunks", "name", "capacity"), [("linear", 1, "1f1b", 30), ("interleaved", 2, "interleaved-1f1b", 40)]
)
def test_first_partition_fits_and_recomputes_no_layer_too_many(placement, chunks, name, capacity):
    document = {"devices": 4, "microbatches": 8, "placement": placement, "chunks": chunks, "layers": LAYERS}
    plan = plan_problem_from(document | {"memory": {"capacity": capacity}})
    (choice,) = plan.choices

    def violations(partition):
        problem = plan.problem(choice, partition)
        return validate(simulate(problem, HEURISTICS[name].order(problem)))

    blind = balanced(plan, choice)
    assert violations(blind)
    order = HEURISTICS[name].order(plan.problem(choice, blind))
    found = balanced(plan, choice, MemoryFit(plan, choice, order))
    assert violations(found) == []
    assert {one.way for stage in found.recompute for one in stage} == {"full"}
    for device, stages in enumerate(choice.on(4).stages_of):
        if any(found.recomputed_on(stage) for stage in stages):
            # One layer less on any of its stages, and the device has too little.
            for stage in (s for s in stages if found.recomputed_on(s)):
                (own,) = found.recomputed_on(stage)
                rows = list(found.recompute)
                rows[stage] = (own._replace(layers=own.layers - 1),) if own.layers > 1 else ()
                fewer = type(found)(found.counts, tuple(rows))
                assert any(f"device {device}" in each.text for each in violations(fewer))
