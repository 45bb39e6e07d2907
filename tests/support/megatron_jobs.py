"""Training steps of tiny models in Megatron-Core, in four processes: by its own schedule, then by exported ones.

    python -m tests.support.megatron_jobs CASES.json FOLDER

Megatron is imported once, then the processes are forked; each writes what it found to FOLDER/RANK.json.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state as state
from megatron.core.pipeline_parallel import schedules, utils
from megatron.core.tensor_parallel.layers import LinearWithGradAccumulationAndAsyncCommunication as LINEAR  # noqa: N814
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout as LAYOUT  # noqa: N814
from megatron.core.utils import get_attr_wrapped_model

import pipesched.megatron
import runtime.running.megatron  # noqa: F401 - once, before the processes are forked
from runtime.megatron import placement
from tests.support import megatron_cpu
from tests.support.megatron_job import RANKS, Job, of_all_ranks

FUNCTIONS = ("forward_backward_pipelining_without_interleaving", "forward_backward_pipelining_with_interleaving")
ORIGINALS = {name: getattr(schedules, name) for name in FUNCTIONS}
ENDS = {name: getattr(utils, name) for name in ("is_pp_first_stage", "is_pp_last_stage")}
ENDS |= {name: getattr(state, name) for name in ("is_pipeline_first_stage", "is_pipeline_last_stage")}
HYBRID = placement.hybrid_allocation()
OWN_SEGMENT = HYBRID and HYBRID.select_pipeline_segment
OWN_LINEAR, OWN_LAYOUT = (LINEAR.forward, LINEAR.backward), (LAYOUT.__init__, LAYOUT.get_layer_offset)


def _of_all_stages(gradients: dict[str, Any]) -> dict[str, Any]:
    return {name: one for rank in of_all_ranks(gradients) for name, one in rank.items()}


def compared(right: dict[str, Any], found: dict[str, Any]) -> dict[str, float | str]:
    """Return the parameters whose gradients differ in any bit, each with the difference relative to the gradient's
    norm.

    It is "missing" or "not finite" in place of a number where one of the two is.
    """
    unequal: dict[str, float | str] = {}
    for name, have in found.items():
        want = right[name]
        if want is None or have is None:
            unequal |= {} if want is have else {name: "missing"}
        elif not (want.isfinite().all() and have.isfinite().all()):
            unequal[name] = "not finite"
        elif not torch.equal(want, have):
            unequal[name] = ((want - have).norm() / want.norm()).item()
    return unequal


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Run a case: for each schedule some steps with all schedules installed, and one by Megatron's own for comparison.

    Returns differences, losses, executed steps and refusals as JSON values.
    """
    _restore()
    devices, where = max(case["rank_of_stage"]) + 1, case["rank_of_stage"]
    loop = [stage % devices for stage in range(len(where))]
    job = Job(case, loop)
    numbers = [one["microbatches"] for one in case["schedules"]]
    evaluates = case.get("evaluates", False)
    before = [(job.step(number), job.step(number, forward_only=True)[0] if evaluates else []) for number in numbers]
    for one in case["schedules"]:
        _install(one["path"])
    if case.get("anew") or where != loop:
        job = Job(case, where)
    executor = getattr(schedules, FUNCTIONS[job.chunks_each > 1])
    found = []
    for number, ((losses, right), evaluated) in zip(numbers, before, strict=True):
        steps = [job.step(number) for _ in range(case.get("steps", 1))]
        found.append(
            {
                "parameters": sum(one is not None for one in steps[0][1].values()),
                "unequal": [compared(_of_all_stages(right), step[1]) for step in steps],
                "losses": [losses, *[step[0] for step in steps]],
                "executed": " ".join(executor.executed),
                "moved": executor.moved,
                "evaluated": [evaluated, job.step(number, forward_only=True)[0] if evaluates else []],
            }
        )
    refusals = [_refusal(job, **one) for one in case.get("refused", ())]
    rank = state.get_pipeline_model_parallel_rank()
    layers = {f"{stage}": _layer_numbers(chunk) for stage, chunk in zip(job.stages, job.chunks, strict=True)}
    return {"rank": rank, "schedules": found, "refusals": refusals, "layers": layers}


def _layer_numbers(chunk: Any) -> list[int]:
    return [one.layer_number for one in get_attr_wrapped_model(chunk, "decoder").layers]


def _restore() -> None:
    for name, function in ORIGINALS.items():
        setattr(schedules, name, function)
    LINEAR.forward, LINEAR.backward = map(staticmethod, OWN_LINEAR)
    LAYOUT.__init__, LAYOUT.get_layer_offset = OWN_LAYOUT
    for module in [one for name, one in sys.modules.items() if name.startswith("megatron.")]:
        if "select_pipeline_segment" in vars(module):
            setattr(module, "select_pipeline_segment", OWN_SEGMENT)  # noqa: B010 - a module, whose type has no such name
        for name in ENDS.keys() & vars(module).keys():
            setattr(module, name, ENDS[name])


def _install(path: str) -> None:
    if path.endswith(".json"):
        pipesched.megatron.install(path)
        return
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _refusal(job: Job, microbatches: int, **settings: Any) -> str:
    """Return the error message of a step with other settings; "it ran" if there was none."""
    was = {name: getattr(job.config, name) for name in settings}
    vars(job.config).update(settings)
    try:
        job.step(microbatches)
    except ValueError as error:
        return str(error)
    finally:
        vars(job.config).update(was)
    return "it ran"


def rank_main(rank: int, cases: list[dict[str, Any]], folder: Path) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), RANKS)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, store=store, timeout=timedelta(days=1))
    megatron_cpu.patch()
    found = {}
    for case in cases:
        try:
            found[case["name"]] = run(case)
        except Exception:
            found[case["name"]] = {"error": traceback.format_exc()}
            break
    (folder / f"{rank}.json").write_text(json.dumps(found))


def main() -> None:
    cases, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if not child:
            rank_main(rank, cases, folder)
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(f"the ranks ended with {codes}" if any(codes) else 0)


if __name__ == "__main__":
    main()
