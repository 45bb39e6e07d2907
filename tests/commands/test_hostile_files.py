"""Files made to break a reader: each is one line of error, at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files import text_file
from pipesched.files.exact_numbers import read_json, read_yaml
from pipesched.files.problem_file import read_problem
from pipesched.files.schedule_file import ScheduleFile, read_schedule, to_text
from pipesched.simulation.simulator import simulate
from solver.construction.list_scheduling import sequential
from tests.support.makers import problem

GOOD = "devices: 2\nmicrobatches: 3\ntimes: {forward: 1, backward: 1}\n"
BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
HOSTILE = {
    "a list in itself": GOOD + "placement: &p [*p]\n",
    "keys in themselves": GOOD + "memory: &m {capacity: *m}\n",
    "references of references": GOOD + BOMB,
    "references within a known key": GOOD.replace("forward: 1", "forward: &a [&b [&c [1]], *b]") + BOMB,
    "half a character": GOOD + 'name: "\\ud800"\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_text(HOSTILE[name], encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_problem(path)
    assert len(caught.value.mistakes) == 1 and len(str(caught.value)) < 400


UNREADABLE = [
    (read_yaml, "devices: " + "[" * 5000, "too deep"),
    (read_json, '{"devices": ' + "[" * 100_000, "too deep"),
    (read_yaml, "devices: " + "9" * 5000, "thousands of digits"),
    (read_json, '{"devices": ' + "9" * 5000 + "}", "thousands of digits"),
    (read_yaml, GOOD + "---\n" + GOOD, "second document"),
]


@pytest.mark.parametrize(("read", "text", "said"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_python_cannot_read_is_said_in_words_of_the_file(
    read: Callable[[str, str], object], text: str, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        read(text, "f")


def test_references_are_read() -> None:
    assert read_yaml("a: &x [1, 2]\nb: *x\nc: [*x, &y z, *y]\n", "f") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": [[1, 2], "z", "z"],
    }


def schedule_document() -> dict[str, object]:
    one = problem(2, 2)
    found: dict[str, object] = json.loads(to_text(ScheduleFile(simulate(one, sequential(one)))))
    return found


@pytest.mark.parametrize("tick", ["1e400", "1e999999999", 10**50, "1/0", "-1", "nan"])
def test_ticks_beyond_measure(tick: object, tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(schedule_document() | {"tick": tick}))
    with pytest.raises(BadInput, match=r"tick: found .*"):
        read_schedule(path)


def test_files_beyond_the_size_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "MOST_BYTES", 20)
    path = tmp_path / "large.yaml"
    path.write_text(GOOD)
    with pytest.raises(BadInput, match="found more than 20 bytes"):
        read_problem(path)


def test_names_cannot_steer_the_terminal_or_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "named.yaml"
    path.write_text(GOOD + 'name: "a\\e[31m\\u202eb<script>"\n', encoding="utf-8")
    out = tmp_path / "out"
    assert main(["solve", str(path), "--time-limit", "1", "--workers", "1", "-o", str(out)]) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err and "\u202e" not in shown.out + shown.err
    assert "a\\x1b[31m\\u202eb<script>" in shown.out
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "b<script>" not in report and "\u202e" not in report and "b&lt;script&gt;" in report
    assert main(["solve", str(path) + "\x1b[31m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (("frontier", "good.yaml"), ".png"),
        (("compare", "good.yaml", "--noise", "5%"), ".png"),
        (("calibrate", "missing.yaml"), ".yaml"),
    ],
    ids=lambda one: one[0],
)
def test_an_output_is_checked_before_anything_is_searched(
    words: tuple[str, ...], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text(GOOD)
    Path("file").write_text("")
    Path(f"folder{ending}").mkdir()
    for path in (f"file/f{ending}", f"folder{ending}", "f.xyz"):
        assert main([*words, "-o", path]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1 and ("found" in said[0] or "written" in said[0]) and "missing" not in said[0]


@pytest.mark.parametrize("kind", ["problem.yaml", "schedule.json"])
def test_mutated_files_never_end_in_a_traceback(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD + "memory: {capacity: 3, activation: [1, 2]}\nname: x\nplacement: linear\n"
    commands = ["simulate", "--schedule", "1f1b", "--no-visualization"]
    if kind == "schedule.json":
        text, commands = json.dumps(schedule_document()), ["validate"]
    path = tmp_path / kind
    for seed in range(150):
        rng = Random(seed)
        mutated = list(text)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(mutated))
            mutated[at] = rng.choice(
                ["", "0", "-", ",", "[", "}", "{", "&a ", "*a", "1e400", "null", '"', "\\ud800", ":"]
            )
        path.write_text("".join(mutated), encoding="utf-8")
        assert main([commands[0], str(path), *commands[1:]]) in (0, 1, 2), path.read_text()
    capsys.readouterr()


def test_a_schedule_that_gathers_too_often_has_no_figures_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"devices": 2, "microbatches": 2, "times": {"forward": 2, "backward": 3}, "objective": "iteration"}
    gathered = document | {"parameters": {"gather": {"time": 1, "memory": 1, "keep": "always"}}}
    (tmp_path / "problem.json").write_text(json.dumps(gathered))
    solve = ["solve", str(tmp_path / "problem.json"), "-o", str(tmp_path), "--time-limit", "2", "--no-text"]
    assert main(solve) == 0
    written = json.loads((tmp_path / "schedule.json").read_text())
    written["orders"][0] += ["U0.1", "D0.1"]
    written["starts"] |= {"U0.1": 60, "D0.1": 61}
    (tmp_path / "wrong.json").write_text(json.dumps(written))
    capsys.readouterr()
    assert main(["validate", str(tmp_path / "wrong.json")]) == 1
    told = capsys.readouterr()
    assert told.out == "parameters: stage 0 is gathered 2 times; its limit is 1\n" and not told.err
