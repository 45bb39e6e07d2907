"""What is typed wrong, for all commands: one line a mistake, exit code 2, nothing else said and no file touched."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import read_problem
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.simulation.simulator import simulate
from tests.support.published_models import PUBLISHED

SMALL = "devices: 2\nmicrobatches: 3\ntime_unit: ms\ntimes: {forward: 1.5, backward: 1.5, weight: 0.5, transfer: 0.1}\n"
LAYERS = "layers: [{name: layer, count: 4, forward: 2, backward: 3, memory: 1, activation: 1}]\n"
PLAN = "devices: 2\nmicrobatches: 2\nmemory: {capacity: 7}\nplacement: linear\n" + LAYERS
FILES = {
    "small.yaml": SMALL,
    "fewer.yaml": SMALL.replace("microbatches: 3", "microbatches: 2"),
    "loop.yaml": SMALL.replace("microbatches: 3", "microbatches: 6") + "placement: interleaved\nchunks: 2\n",
    "old.yaml": "num_stages: 4\nnum_batches: 8\n",
    "plan.yaml": PLAN,
    "plan-of-two.yaml": PLAN.replace("devices: 2", "devices: two"),
    "plan-of-a-v.yaml": PLAN.replace("linear", "v-shape"),
    "sweep.yaml": SMALL + "sweep: {memory: [1, 2]}\n",
    "sweep-wrong.yaml": SMALL + "sweep: 5\n",
    "config.json": '{"model_type": "llama", "hidden_size": 4096}',
    "llama.json": json.dumps(PUBLISHED["Llama 3.1 8B"][0]),
    "config.xml": "<a/>",
    "bad.toml": "[model\n",
    "no-table.toml": 'model = "llama3"\n',
    "no-tables.toml": 'training = 3\nparallelism = 4\n[model]\nname = "llama3"\nflavor = "8B"\n',
    "empty.sqlite": "",
    "damaged.sqlite": "SQLite format 3\0" + "x" * 200,
    "locked.csv": "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n",
}
LAYOUTS = "layouts llama.json --gpus 8 --hardware h100-80gb --for megatron"

# What is typed, and what is said of it; in as many lines as there are mistakes.
WRONG: list[tuple[str, str, int]] = [
    *((typed, said, 1) for typed, said in {
        "check damaged.sqlite": "damaged.sqlite: ",
        "check empty.sqlite": "empty.sqlite: ",
        "compare": "found no problem file",
        "compare fewer.yaml --no-optimal --with locked.csv": "waits for",
        "compare loop.yaml --no-optimal --schedules interleaved-1f1b:0": "allowed: interleaved-1f1b:NUMBER",
        "compare plan.yaml --noise 0.1": "found a plan file and --noise",
        "compare plan.yaml --schedules vp": "unknown schedule 'vp'",
        "compare small.yaml --measured small.yaml": "no trace of a known format",
        "compare small.yaml --no-optimal --with no-list.json": "no-list.json: orders: found no list of lists",
        "compare small.yaml --no-optimal --with no-pass.json": "no-pass.json: ",
        "compare small.yaml --objective period --noise 5%": "objective: found period",
        "compare small.yaml --objective period --with any.csv": "objective: found period",
        "compare small.yaml --schedules ZB-H7": "unknown schedule 'ZB-H7'; known: 1f1b, ",
        "compare small.yaml --schedules zb-h11": "; did you mean 'zb-h1'?",
        "compare small.yaml -o x.png": "--output without --noise",
        "compare small.yaml loop.yaml --noise 5%": "found several problems and --noise",
        "completion cmd.exe": "cmd.exe",
        "export schedule.json --format torch-cvs": "did you mean 'torch-csv'?",
        "export schedule.json -o schedule.json": "the schedule file itself",
        "frontier small.yaml --objective period": "objective: found period; ",
        "layouts llama.json --gpus 8 --microbatches 8 --hardware h100": "found 'h100', which may be h100-80gb or h100-80gb-vboost or h100-96gb; allowed: one of them",
        LAYOUTS: "--batch, --microbatches: found neither; allowed: one of them",
        f"{LAYOUTS} --microbatches 16 --tensor 3": "found no layout of 8 GPUs with --tensor 3; allowed: ",
        f"{LAYOUTS} --microbatches 16 -o config.json": "--output: found 'config.json', which is no directory",
        "new .": ".: found a folder; allowed: the name of a file to write",
        "new -o ../..": "../..: found a folder",
        "new --from no-table.toml": "no-table.toml: model: found 'llama3'; allowed: a table, [model]",
        "new --devices 4": "found without --from",
        "new --from bad.toml": "is no TOML",
        "new --from config.xml": "found the ending '.xml'",
        "new --from llama.json --microbatches 64 --hardware h100-80gb": "--devices: missing",
        "new small.yaml": "small.yaml",
        "plan old.yaml": "has no layers; allowed: a plan file",
        "plan plan-of-a-v.yaml --for deepspeed": "--for deepspeed: found placement v-shape; allowed: linear",
        "plan plan-of-two.yaml": "devices: found 'two'",
        "plot cut.json": "cannot be drawn",
        "plot missing.json": "missing.json: no such file",
        "plot schedule.json --text --json": "--json",
        "plot schedule.json --text --kind memory": "--kind",
        "plot schedule.json --zoom 1:3 -o page.html": "--zoom",
        "plot schedule.json --zoom 3:1 -o a.png": "--zoom",
        "profile --by-layer": "--by-layer",
        "profile --by-layer --layers 2 --chunks 2": "--chunks",
        "profile --by-layer --model a:b": "--model",
        "profile --by-layer 3 --layers 2": "--by-layer",
        "profile --hidden 30": "heads: found 4",
        "profile --model a.b:c --hidden 8": "--hidden: found with --model",
        "profile --model nothing": "--model: found 'nothing'",
        "profile --placement vshape": "did you mean 'v-shape'",
        "profile --transfer soon": "--transfer: found 'soon'",
        "run schedule.json --hidden 0": "--hidden: found 0",
        "run schedule.json --sleep --hidden 8": "--hidden: found with another model",
        "run schedule.json --sleep --model a:b": "--sleep: found together with --model",
        "run schedule.json --sleep-unit 0ms": "--sleep-unit: found '0ms'",
        "run schedule.json --sleep-unit 20": "--sleep-unit: found '20'",
        "run schedule.json --steps 1": "--steps: found 1",
        "run schedule.json --timeout 0": "--timeout: found 0",
        "simulate -s 2": "command line: num_batches: missing; it is required",
        "simulate -s 2 -b 2 --watch": "--watch",
        "simulate -s 2 -b 3 -f 1 2 3": "command line: forward_times: found 3 values",
        "simulate -s two -b 3": "--num-stages: found 'two'",
        "simulate schedule.json --schedule 1f1b": "--schedule",
        "simulate small.yaml --noise -5%": "argument --noise: found '-5%'",
        "simulate small.yaml --noise 5% --samples 0": "--samples: found '0'; allowed",
        "simulate small.yaml --noise 5% --seed -1": "--seed: found '-1'; allowed",
        "simulate small.yaml --noise 5% -o x.gif": "x.gif: found the ending '.gif'",
        "simulate small.yaml --noise much": "--noise: found 'much'; allowed",
        "simulate small.yaml --text --json": "--json",
        "simulate small.yaml --watch --json": "--watch",
        "simulate small.yaml -s 3": "found a problem file and flags that describe a pipeline",
        "solve config.json": "config.json: found a model's configuration (`pipesched layouts` and",
        "solve small.yaml --explain-time 5": "found --explain-time without --explain",
        "solve small.yaml --for torch --objective period": "period",
        "solve small.yaml --measured small.yaml": "not a measured trace",
        "solve small.yaml -o small.yaml": "--output: found '",
        "solve sweep-wrong.yaml": "sweep: found 5; allowed: fields, each with",
        "sweep sweep.yaml --store small.yaml": "small.yaml: found no store of sweeps",
        "sweep sweep.yaml --write 7": "--write: found 7; allowed: the number of a cell, 0 to 1",
        "sweep sweep.yaml -o small.yaml": "small.yaml",
        "validate small.yaml": "small.yaml: found a problem file, with times per stage (`pipesched solve` reads it)",
    }.items()),
    ("profile --devices 0 --repetitions 0", "--repetitions: found 0", 2),
    ("profile --placement 0,2", "placement[1]: found device 2", 2),
    ("new --from no-tables.toml", "no-tables.toml: training: found 3", 2),
    ("simulate fewer.yaml --schedule schedule.json", "does not match", 2),
    ("profile --by-layer --layers 2 --objective period --placement v-shape", "--objective", 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files, and schedule files: a right one, and some with a mistake."""
    made = tmp_path_factory.mktemp("typed")
    for name, text in FILES.items():
        (made / name).write_text(text)
    one = read_problem(made / "small.yaml")
    text = to_text(ScheduleFile(simulate(one, HEURISTICS["1f1b"].order(one))))
    (made / "schedule.json").write_text(text)
    first, *others = json.loads(text)["orders"]
    for name, orders in {"cut": [first[:-1], *others], "no-list": "nothing", "no-pass": [["F0.x"]]}.items():
        (made / f"{name}.json").write_text(json.dumps(json.loads(text) | {"orders": orders}))
    return made


@pytest.mark.parametrize(("typed", "said", "mistakes"), WRONG, ids=[typed for typed, _, _ in WRONG])
def test_bad_input_is_a_line_a_mistake_and_exit_code_2(
    typed: str,
    said: str,
    mistakes: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if typed.startswith(("profile", "run")) and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        code = main(shlex.split(typed))
    except SystemExit as error:  # how argparse ends
        code = int(error.code or 0)
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert said in told.err
    assert [line.startswith("pipesched: ") for line in told.err.splitlines()] == [True] * mistakes, told.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("words", [["check"], ["calibrate"], ["new"]], ids=lambda one: one[0])
def test_a_name_that_is_too_long_is_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 300
    assert main([*words, name]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and name in said[0] and "File name too long" in said[0]
