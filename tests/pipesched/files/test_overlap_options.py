"""Options of jobs that hide the exchange of gradients and weights, or do not, and what their plans say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.overlap_options import hidden_shares
from pipesched.files.model_configs.plan_of_config import Wanted, plan_text
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem

MODEL = "--num-layers 8 --hidden-size 4096 --num-attention-heads 32 --vocab-size 32000 --seq-length 4096\n"
JOB = MODEL + "--micro-batch-size 1 --pipeline-model-parallel-size 2\n"
SHARDED = "--use-distributed-optimizer "


def shares_of(config: ModelConfig) -> tuple[str | None, str | None]:
    """The two shares that a configuration says, None for one that it does not."""
    found = [config.hidden.get(f"{name}_hidden_share", (None, ""))[0] for name in ("data", "gather")]
    return found[0], found[1]


def read(tmp_path: Path, text: str, ending: str = "sh") -> ModelConfig:
    file = tmp_path / f"job.{ending}"
    file.write_text(text)
    return read_config(str(file))


def plan_of(config: ModelConfig, data: int = 8, **rates: Any) -> PlanProblem:
    wanted = Wanted(2, 8, "h100-80gb", DEVICES["h100-80gb"], sizes={"data": data}, rates=rates)
    return plan_problem_from(read_yaml(plan_text(config, wanted, "job.sh"), "plan"), "plan")


@pytest.mark.parametrize(
    ("script", "shares"),
    [
        (MODEL, (None, None)),
        (JOB, ("0%", None)),
        (JOB + "--use-torch-fsdp2", (None, None)),
        (JOB + "--use-megatron-fsdp", (None, None)),
        (JOB + "--overlap-grad-reduce", ("100%", None)),
        (JOB + SHARDED + "--overlap-grad-reduce", ("100%", "0%")),
        (JOB + SHARDED + "--overlap-grad-reduce --overlap-param-gather", ("100%", "100%")),
        (MODEL + "--overlap-grad-reduce", ("100%", None)),
        (JOB + "--DDP-impl local", ("0%", None)),
        (JOB + "--DDP-impl torch", (None, None)),
        (JOB + "--deepspeed", ("0%", "0%")),
        (MODEL + "--deepspeed", (None, None)),
        (MODEL + '--deepspeed\ncat <<EOT > ds.json\n{"stage": 2, "overlap_comm": true}\nEOT', ("100%", "0%")),
        (MODEL + "--deepspeed\necho '{\"overlap_comm\" : false}' > ds.json", ("0%", "0%")),
        (MODEL + "--deepspeed --zero-stage 3\necho '{\"overlap_comm\": true}' > ds.json", (None, None)),
        (JOB + "\necho '{\"overlap_comm\": true}' > unused.json", ("0%", None)),
    ],
)
def test_what_a_script_hides(tmp_path: Path, script: str, shares: tuple[str | None, str | None]) -> None:
    """An option that a whole job does not have is off; a model's arguments alone say nothing."""
    assert shares_of(read(tmp_path, script)) == shares


@pytest.mark.parametrize(
    ("more", "shares"),
    [
        ("", (None, None)),
        ("comm_overlap: {overlap_grad_reduce: true, overlap_param_gather: false}", ("100%", "0%")),
        ("comm_overlap: {overlap_grad_reduce: null}\nddp: {overlap_grad_reduce: false}", ("0%", None)),
        ("ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}", ("100%", None)),
        ("optim: {overlap_grad_sync: true, overlap_param_sync: true}", ("100%", "100%")),
        ("optim: {overlap_grad_sync: false}", ("0%", None)),
    ],
)
def test_what_yaml_of_bridge_and_nemo_hides(tmp_path: Path, more: str, shares: tuple[str | None, str | None]) -> None:
    """Their defaults are a recipe's, so that a key which is not there says nothing, and null says nothing."""
    model = "model: {num_layers: 8, hidden_size: 64, num_attention_heads: 4, vocab_size: 1000, micro_batch_size: 1}\n"
    assert shares_of(read(tmp_path, model + more, "yaml")) == shares


@pytest.mark.parametrize(
    ("line", "shares"),
    [
        ("", (None, None)),
        ("overlap_grad_reduce ............................. False", ("0%", None)),
        ("overlap_grad_reduce ............................. True\n  overlap_param_gather ... False", ("100%", "0%")),
        ("DDP_impl ........................................ local", ("0%", None)),
    ],
)
def test_what_a_log_says(tmp_path: Path, line: str, shares: tuple[str | None, str | None]) -> None:
    sizes = {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 1024}
    listed = "".join(f"  {name} ......... {value}\n" for name, value in sizes.items())
    log = f"-------- arguments --------\n{listed}  {line}\n-------- end of arguments --------\n"
    assert shares_of(read(tmp_path, log, "log")) == shares


def test_a_plan_says_what_is_not_hidden_and_counts_it(tmp_path: Path) -> None:
    """Without overlap a step ends with all of the exchange; with gradients alone hidden, with that of weights."""
    hidden, gradients, none = (
        plan_of(read(tmp_path, JOB + more))
        for more in (
            SHARDED + "--overlap-grad-reduce --overlap-param-gather", SHARDED + "--overlap-grad-reduce", SHARDED,
        )
    )  # fmt: skip

    def exposed(plan: PlanProblem) -> float:
        assert plan.step is not None
        return float(plan.step.reduction.get("layer", 0))

    assert exposed(hidden) == 0 < exposed(gradients) < exposed(none)
    # 2 bytes of a weight are gathered, of 4 of a gradient and 2 that are exchanged.
    assert exposed(gradients) == pytest.approx(exposed(none) / 3, rel=1e-3)
    said = ["\n".join(plan.assumptions) for plan in (hidden, gradients, none)]
    assert "behind 100 % of a backward and 100 % of a forward" in said[0]
    assert "gathered at" in said[1] and "behind 100 % of a backward\n" in said[1]
    assert "not hidden behind computation" in said[2].partition("data parallel:")[2]


def test_the_plan_names_the_option_and_a_rate_replaces_it(tmp_path: Path) -> None:
    config = read(tmp_path, JOB + SHARDED + "--overlap-grad-reduce")
    wanted = Wanted(2, 8, "h100-80gb", DEVICES["h100-80gb"], sizes={"data": 8})
    text = plan_text(config, wanted, "job.sh")
    assert "data_hidden_share: 100%" in text and "# overlap_grad_reduce: the last backward hides gradients" in text
    assert "gather_hidden_share: 0%" in text and "# assumed: without overlap_param_gather" in text
    alone = plan_text(config, Wanted(2, 8, "h100-80gb", DEVICES["h100-80gb"]), "job.sh")
    assert "hidden_share" not in alone
    given = Wanted(2, 8, "h100-80gb", DEVICES["h100-80gb"], sizes={"data": 8}, rates={"gather_hidden_share": "50%"})
    assert "gather_hidden_share: 50%" in plan_text(config, given, "job.sh")


def test_options_as_text_of_logs_and_as_values_of_yaml_are_the_same() -> None:
    for on in (True, "True", "true", "1"):
        assert hidden_shares({"overlap_grad_reduce": on}, False)["data_hidden_share"][0] == "100%"
    for off in (False, "False", "false", "0"):
        assert hidden_shares({"overlap_grad_reduce": off}, True)["data_hidden_share"][0] == "0%"
