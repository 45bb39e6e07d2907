"""The Python module that the Primus exporter writes: a table of nodes in place of one of Primus' own algorithms."""

from __future__ import annotations

_MODULE = '''# schedule {schedule!a} of problem {problem!a}, by pipesched {version}; {proof}
"""Import this before Primus trains: --patch_primus_pipeline with --pp_algorithm {algorithm} then runs this order.

{devices} ranks, {chunks} chunks each, {microbatches} micro-batches{offload}.
"""

from primus.core.pipeline_parallel.scheduler import schedule_table_factory
from primus.core.pipeline_parallel.scheduler.algorithms.base import PipelineScheduleAlgo
from primus.core.pipeline_parallel.scheduler.scheduler_node import FuncType, SchedulerNode

ALGORITHM = {algorithm!r}
RANKS, CHUNKS, MICROBATCHES = {devices}, {chunks}, {microbatches}
RANK_OF_STAGE = {ranks}
CHUNK_OF_STAGE = {chunk_of_stage}
# Of each rank kind, stage, micro-batch and slot of what it runs. A tensor leaves in the slot after that of its pass, on
# both of its ranks, and no pass that needs it is in an earlier one: ranks meet slot by slot.
ROWS = [
{rows}
]


class Planned(PipelineScheduleAlgo):
    """The table, whatever else the algorithm of this name would be told."""

    def __init__(self, pp_size, vpp_size, micro_batches, **told):
        super().__init__(pp_size, vpp_size, micro_batches)
        if (pp_size, vpp_size, micro_batches) != (RANKS, CHUNKS, MICROBATCHES):
            raise ValueError(
                f"this schedule is for {{RANKS}} ranks, {{CHUNKS}} chunks and {{MICROBATCHES}} micro-batches, not "
                f"{{pp_size}}, {{vpp_size}} and {{micro_batches}}"
            )
        if told.get("offload") and not OFFLOADED:
            raise ValueError("this schedule moves nothing to the host: leave out --offload")
        if OFFLOADED and not told.get("offload"):
            raise ValueError("this schedule moves activations to the host: give --offload")

    def last_pp_stage_rank(self):
        return RANK_OF_STAGE[-1]

    def direction_map(self, rank, chunk, func_type):
        raise NotImplementedError("the table has its sends and receives")

    def generate_schedule_table(self):
        passes = [[_parsed(word) for word in row.split()] for row in ROWS]
        slots = [[] for _ in range(RANKS)]
        for rank, row in enumerate(passes):
            for at, (kind, stage, number, slot) in enumerate(row):
                for place, node in _transfer(kind, stage, number, slot + 1):
                    slots[place].append((slot + 1, 0, node.func_type in (FuncType.RF, FuncType.RB), at, node))
                args = {{"time_step": slot}}
                if kind == "F" and (stage, number) in OFFLOADED:
                    args["should_offload"] = True
                node = SchedulerNode(FuncType[kind], number, CHUNK_OF_STAGE[stage], args=args)
                slots[rank].append((slot, 1, False, at, node))
        return [[one[-1] for one in sorted(row, key=lambda one: one[:-1])] for row in slots]


def _parsed(word):
    what, slot = word.split("@")
    kind = what.rstrip("0123456789.")
    stage, number = map(int, what[len(kind):].split("."))
    return kind, stage, number, int(slot)


OFFLOADED = {{one[1:3] for row in ROWS for one in map(_parsed, row.split()) if one[0] == "O"}}


def _transfer(kind, stage, number, slot):
    """The two nodes that move what a pass yields, with the ranks that they are on."""
    there = stage + 1 if kind == "F" else stage - 1
    if kind not in ("F", "B", "BW") or not 0 <= there < len(RANK_OF_STAGE):
        return
    send, receive = (FuncType.SF, FuncType.RF) if kind == "F" else (FuncType.SB, FuncType.RB)
    ranks, chunks = (RANK_OF_STAGE[stage], RANK_OF_STAGE[there]), (CHUNK_OF_STAGE[stage], CHUNK_OF_STAGE[there])
    args = {{"from_pp_rank": ranks[0], "to_pp_rank": ranks[1], "time_step": slot}}
    yield ranks[0], SchedulerNode(send, number, chunks[0], args=args | {{"send_to_chunk": chunks[1]}})
    yield ranks[1], SchedulerNode(receive, number, chunks[1], args=args | {{"recv_from_chunk": chunks[0]}})


schedule_table_factory.pp_algorithm_map[ALGORITHM] = Planned
'''


def module_text(**values: object) -> str:
    """Return the text of the module.

    The arguments (`values`) fill in the placeholders of the same names in its template: `schedule`, `problem`,
    `version`, `proof`, `algorithm`, `offload` as text; the numbers `devices`, `chunks` (of a device) and
    `microbatches`; `ranks` and `chunk_of_stage`, lists by stage; `rows`, the lines of a tuple of texts, one a rank.
    """
    return _MODULE.format(**values)
