"""Tests in runtimes: the rows of docs/runtimes.md, each with the test that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, parse_slot
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.running.job import job_for

TRAINED, READ, MODEL, REFUSED, BY_HAND, NEVER = "trained", "read", "model", "refused", "by command", ""


class Cell(NamedTuple):
    """A cell of the page: a test of a feature in a runtime.

    `how` is one of the kinds of test above; `where` is a test, `file::function`, with its parameter `case`, or a page.
    """

    how: str
    where: str
    case: str = ""


@dataclass(frozen=True)
class Feature:
    """A row of the page: a feature, and its cell for each runtime.

    `example` makes a schedule with the feature: a runtime without a cell is marked as refusing if its exporter refuses
    that.
    """

    name: str
    cells: dict[str, Cell] = field(default_factory=dict)
    example: Callable[[], Timeline] | None = None


def _export(name: str) -> Callable[[Timeline], object]:
    return EXPORTERS[name].export


PYTORCH, OURS, TITAN, MEGATRON = "PyTorch", "ours on PyTorch", "torchtitan", "Megatron"
DEEPSPEED, JAXPP, ZERO_BUBBLE = "DeepSpeed", "JaxPP", "zero-bubble"
RUNTIMES: dict[str, Callable[[Timeline], object]] = {
    PYTORCH: _export("torch-csv"),
    OURS: job_for,
    TITAN: _export("torchtitan"),
    MEGATRON: _export("megatron"),
    DEEPSPEED: _export("deepspeed"),
    JAXPP: _export("jaxpp"),
    ZERO_BUBBLE: _export("zero-bubble-nodes"),
}

MEMORY = {
    "activation": 4,
    "offload": {"out": 1, "in": 1, "on": ["d2h", "h2d"]},
    "recompute": [{"name": "full", "time": 2, "keeps": 1}],
    "decide": {"offload": "free", "recompute": "free"},
}
LOOP = {"placement": "interleaved", "chunks": 2}


def _problem(**keys: object) -> Problem:
    times = {"forward": 1, "backward": 1, "weight": 1}
    return problem_from({"devices": 4, "microbatches": 8, "times": times} | keys, "example")


def _named(name: str, **keys: object) -> Callable[[], Timeline]:
    def made() -> Timeline:
        one = _problem(**keys)
        return simulate(one, HEURISTICS[name].order(one))

    return made


def _by_hand(*rows: str, **keys: object) -> Callable[[], Timeline]:
    def made() -> Timeline:
        one = _problem(**({"devices": 2, "microbatches": 2} | keys))
        return simulate(one, Schedule(tuple(tuple(map(parse_slot, row.split())) for row in rows)))

    return made


PYT, MEG, EXP = "tests/runtime/pytorch/", "tests/runtime/megatron/", "tests/runtime/exporters/test_every_exporter.py::"
JOBS = PYT + "test_executed_jobs.py::test_every_gradient_is_the_reference_s_and_the_order_the_file_s"
SAVING = PYT + "test_saving.py::test_every_gradient_and_loss_is_that_of_the_whole_model"
GPT = MEG + "test_executor.py::test_every_gradient_and_loss_is_that_of_megatrons_own_schedule"
PARTS = MEG + "test_parts.py::test_what_was_never_run_is_refused_in_a_sentence"
TRAINER = "docs/results/torchtitan.md"
LOADED = PYT + "test_load_refusals.py::test_what_cannot_be_run_is_refused_in_one_line"
THEIR_DEEPSPEED = EXP + "test_deepspeed_runs_the_same_order"
THEIR_V = EXP + "test_deepspeed_takes_a_v_of_full_backwards_in_any_order"
THEIR_JAXPP = EXP + "test_jaxpp_gets_the_same_order"
THEIR_NODES = EXP + "test_node_lists_are_read_back_with_their_times"
EVALUATED = MEG + "test_executor.py::test_evaluation_gives_what_it_gave_before"
TRACED = "tests/runtime/traces/"
PLACED = "tests/runtime/exporters/test_torch_reads_csv.py::test_torch_reads_places_and_lowers_it_as_we_do"

FEATURES = (
    Feature(
        "linear",
        {
            PYTORCH: Cell(TRAINED, JOBS, "linear"), OURS: Cell(TRAINED, SAVING, "offloaded"),
            TITAN: Cell(BY_HAND, TRAINER), MEGATRON: Cell(TRAINED, GPT, "linear"),
            DEEPSPEED: Cell(MODEL, THEIR_DEEPSPEED), JAXPP: Cell(MODEL, THEIR_JAXPP),
            ZERO_BUBBLE: Cell(MODEL, THEIR_NODES),
        },
        _by_hand("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1"),
    ),
    Feature(
        "loop of several chunks",
        {
            PYTORCH: Cell(TRAINED, JOBS, "interleaved"), OURS: Cell(TRAINED, SAVING, "on a loop"),
            TITAN: Cell(BY_HAND, TRAINER), MEGATRON: Cell(TRAINED, GPT, "interleaved"),
            JAXPP: Cell(MODEL, THEIR_JAXPP), ZERO_BUBBLE: Cell(MODEL, THEIR_NODES),
        },
        _named("interleaved-1f1b", **LOOP),
    ),
    Feature(
        "V",
        {
            PYTORCH: Cell(TRAINED, JOBS, "v-shape"), OURS: Cell(TRAINED, SAVING, "in a V"),
            TITAN: Cell(BY_HAND, TRAINER), MEGATRON: Cell(TRAINED, GPT, "V"), DEEPSPEED: Cell(MODEL, THEIR_V),
            JAXPP: Cell(MODEL, THEIR_JAXPP), ZERO_BUBBLE: Cell(MODEL, THEIR_NODES),
        },
        _by_hand("F0.0 F0.1 F3.0 BW3.0 F3.1 BW3.1 BW0.0 BW0.1 F0.2 F0.3 F3.2 BW3.2 F3.3 BW3.3 BW0.2 BW0.3",
                 "F1.0 F2.0 F1.1 F2.1 BW2.0 BW1.0 BW2.1 BW1.1 F1.2 F2.2 F1.3 F2.3 BW2.2 BW1.2 BW2.3 BW1.3",
                 placement="v-shape", microbatches=4),
    ),
    Feature(
        "stages wherever you like",
        {PYTORCH: Cell(TRAINED, JOBS, "explicit")},
        _by_hand("F0.0 F2.0 F0.1 F2.1 BW2.0 BW2.1 BW0.0 BW0.1", "F1.0 F1.1 BW1.0 BW1.1", placement=[0, 1, 0]),
    ),
    Feature(
        "a stage on two devices",
        {OURS: Cell(TRAINED, PYT + "test_load.py::test_loops_of_ones_own_get_the_right_gradients")},
        _named("chimera", placement="bidirectional"),
    ),
    Feature(
        "B and W apart",
        {
            PYTORCH: Cell(TRAINED, JOBS, "random"), OURS: Cell(TRAINED, SAVING, "mixed"),
            TITAN: Cell(BY_HAND, TRAINER), MEGATRON: Cell(TRAINED, GPT, "linear"),
            JAXPP: Cell(MODEL, EXP + "test_weight_passes_are_renumbered_for_queues"),
            ZERO_BUBBLE: Cell(MODEL, EXP + "test_nodes_of_renumbered_weight_passes_keep_their_times"),
        },
        _by_hand("F0.0 F0.1 B0.0 W0.0 B0.1 W0.1", "F1.0 B1.0 W1.0 F1.1 B1.1 W1.1"),
    ),
    Feature(
        "micro-batches overtake each other",
        {
            PYTORCH: Cell(TRAINED, JOBS, "random"), OURS: Cell(TRAINED, JOBS, "bidirectional"),
            MEGATRON: Cell(TRAINED, GPT, "interleaved, random"),
            DEEPSPEED: Cell(MODEL, EXP + "test_deepspeed_with_micro_batches_that_overtake"),
        },
        _by_hand("F0.0 F0.1 BW0.1 BW0.0", "F1.1 BW1.1 F1.0 BW1.0"),
    ),
    Feature(
        "blocks of a forward and a backward",
        {PYTORCH: Cell(TRAINED, JOBS, "pairs"), JAXPP: Cell(MODEL, THEIR_JAXPP, "overlap")},
        _by_hand("F0.0 F0.1 BW0.0 BW0.1", "F1.0 F1.1&BW1.0 BW1.1",
                 times={"forward": 1, "backward": 1, "weight": 1, "overlapped": 2}),
    ),
    Feature(
        "copies to the host",
        {OURS: Cell(TRAINED, SAVING, "offloaded"), MEGATRON: Cell(TRAINED, GPT, "offloaded")},
        _named("pipeoffload-full", memory=MEMORY),
    ),
    Feature(
        "recomputation",
        {OURS: Cell(TRAINED, SAVING, "recomputed"), MEGATRON: Cell(TRAINED, GPT, "recomputed")},
        _named("uniform-recompute", memory=MEMORY | {"decide": {"recompute": "always", "offload": "never"}}),
    ),
    Feature("micro-batches of several pieces", {}, _named("seq1f1b", sequence_chunks=2)),
    Feature("micro-batches of several sizes", {}, _named("1f1b", microbatch_scale=[1, 2, 1, 1, 1, 1, 1, 1])),
    Feature(
        "data parallel, gradients reduced meanwhile",
        {
            OURS: Cell(REFUSED, LOADED, "DistributedDataParallel"),
            MEGATRON: Cell(TRAINED, GPT, "data parallel, random"),
        },
    ),
    Feature(
        "FSDP",
        {
            OURS: Cell(REFUSED, LOADED, "FSDP"), TITAN: Cell(BY_HAND, TRAINER),
            MEGATRON: Cell(REFUSED, MEG + "test_parts.py::test_fsdp_is_refused"),
        },
    ),
    Feature("distributed optimizer", {MEGATRON: Cell(TRAINED, GPT, "parameters gathered")}),
    Feature("tied embeddings", {
        OURS: Cell(REFUSED, PYT + "test_models.py::test_what_is_wrong_with_a_model_is_said_with_its_place", "tied"),
        MEGATRON: Cell(TRAINED, GPT, "data parallel, tied, recomputed"),
    }),
    Feature("experts", {MEGATRON: Cell(TRAINED, GPT, "experts")}),
    Feature("tensor parallel", {MEGATRON: Cell(TRAINED, GPT, "tensor parallel")}),
    Feature("sequence parallel", {MEGATRON: Cell(REFUSED, PARTS, "sequence parallelism")}),
    Feature("context parallel", {MEGATRON: Cell(REFUSED, PARTS, "context parallelism")}),
    Feature("CUDA graphs (torchtitan: switched off)", {
        TITAN: Cell(READ, EXP + "test_torchtitan_itself_takes_flags_and_configuration"),
        MEGATRON: Cell(REFUSED, PARTS, "CUDA graphs"),
    }),
    Feature("another number of micro-batches", {
        OURS: Cell(REFUSED, PYT + "test_load_refusals.py::test_a_step_without_loss_or_of_another_batch_is_refused"),
        MEGATRON: Cell(REFUSED, MEG + "test_executor.py::test_another_number_of_microbatches_is_refused"),
    }),
    Feature("evaluation", {MEGATRON: Cell(TRAINED, EVALUATED)}),
    Feature("dropout", {
        PYTORCH: Cell(TRAINED, PYT + "test_models.py::test_every_kind_of_model_has_the_gradients_of_the_reference"),
        OURS: Cell(TRAINED, PYT + "test_saving.py::test_a_forward_that_runs_again_draws_the_same_numbers"),
        MEGATRON: Cell(READ, MEG + "test_saving.py::test_a_forward_that_runs_again_draws_the_same_numbers"),
    }),
    Feature("a W left out is found", {
        PYTORCH: Cell(TRAINED, PYT + "test_executed_jobs.py::test_a_missing_w_is_refused_by_the_runtime"),
        OURS: Cell(TRAINED, PYT + "test_saving.py::test_what_is_left_out_is_found"),
        MEGATRON: Cell(TRAINED, MEG + "test_executor.py::test_a_weight_pass_left_out_is_seen"),
    }),
)  # fmt: skip

PLANS = "tests/runtime/partitions/"
SETTINGS = (
    ("Megatron: order and group size of interleaved 1F1B",
     Cell(READ, PLANS + "test_megatron_core.py::test_orders_are_those_of_its_schedule_table")),
    ("Megatron: numbers of micro-batches that it takes",
     Cell(MODEL, PLANS + "test_runtime_rules.py::test_a_group_that_megatron_refuses_is_not_written")),
    ("Megatron: layouts", Cell(MODEL, PLANS + "test_partition_formats.py::test_a_layout_means_what_megatron_says")),
    ("Megatron: arguments of main that make other layers are refused or named",
     Cell(MODEL, "tests/pipesched/files/test_model_configs.py::"
          "test_arguments_that_make_other_layers_are_refused_by_name")),
    ("Megatron: flags of the job that contradict the plan",
     Cell(MODEL, PLANS + "test_runtime_rules.py::test_what_the_job_must_leave_out_is_listed_and_never_set_again")),
    ("Megatron: patterns of hybrid models",
     Cell(MODEL, PLANS + "test_runtime_rules.py::test_hybrid_models_have_a_pattern_and_no_layout")),
    ("Megatron: patterns of plain transformers for HybridModel",
     Cell(MODEL, PLANS + "test_runtime_rules.py::test_a_plain_transformer_has_a_pattern_of_two_letters_a_layer")),
    ("Megatron: stages of a HybridModel in a V (by hand: main of 2026-08 trains them)",
     Cell(MODEL, "tests/runtime/megatron/test_parts.py::"
          "test_a_hybrid_model_in_a_v_is_built_from_the_segments_of_its_stages")),
    ("Megatron: recomputed layers of each rank (hook)",
     Cell(READ, PLANS + "test_megatron_core.py::test_a_block_recomputes_what_the_hook_says")),
    ("torchtitan: flags and configuration of a plan",
     Cell(READ, PLANS + "test_plan_settings.py::test_what_settings_say_is_what_their_runtime_takes")),
    ("torchtitan: what its chunked loss does to a split last stage",
     Cell(TRAINED, PYT + "test_chunked_loss.py::test_a_chunked_loss_needs_whole_backwards_of_the_last_stage")),
    ("torchtitan: sequence and micro-batch of 0.3.0 and of main",
     Cell(MODEL, PLANS + "test_runtime_rules.py::"
          "test_what_the_file_says_of_training_is_in_the_settings_of_every_runtime")),
    ("FlagScale: one mesh of all devices",
     Cell(MODEL, PLANS + "test_runtime_rules.py::test_flagscale_is_told_of_one_mesh_of_all_devices")),
    ("DeepSpeed: where layers are cut",
     Cell(MODEL, PLANS + "test_partition_formats.py::test_deepspeed_module_cuts_where_the_plan_does")),
    ("Primus: tables of nodes (by hand: 48 tables read, the 40 that it has too equal to its own)",
     Cell(MODEL, "tests/runtime/exporters/test_primus.py::test_the_table_is_the_schedule_and_ranks_meet")),
    ("orders that a runtime's settings cannot say",
     Cell(REFUSED, PLANS + "test_plan_settings.py::test_an_order_that_a_runtime_does_not_run_has_no_settings")),
    ("programs of several streams",
     Cell(MODEL, "tests/runtime/exporters/test_streams.py::test_an_executor_of_streams_needs_the_file_alone")),
    ("sends and receives as PyTorch places them", Cell(READ, PLACED)),
    ("traces of PyTorch's pipeline runtime, with waits of known length",
     Cell(READ, TRACED + "test_torch_profiler.py::test_a_wait_inside_a_pass_is_no_work")),
    ("traces on the host: a pass that did nothing",
     Cell(MODEL, TRACED + "test_traces.py::test_on_the_host_a_pass_that_did_nothing_takes_no_time")),
    ("traces of torchtitan's profiler", Cell(BY_HAND, TRAINER)),
    ("traces of Primus: two public runs",
     Cell(READ, "tests/pipesched/measurement/test_late_starts.py::"
          "test_two_public_runs_are_predicted_within_two_percent")),
    ("traces of Nsight Systems", Cell(MODEL, TRACED + "test_traces.py::test_a_run_is_read_back", "write_nsys")),
    ("timers of Megatron", Cell(MODEL, TRACED + "test_traces.py::test_megatron_timers_are_totals_of_a_step")),
    ("memory snapshots",
     Cell(MODEL, TRACED + "test_memory_snapshots.py::test_passes_and_peaks_come_from_the_snapshots")),
)  # fmt: skip
