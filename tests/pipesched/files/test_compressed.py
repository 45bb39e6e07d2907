"""Files compressed by gzip: every reader takes them, and says what is wrong with a damaged one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files import text_file
from pipesched.files.problem_file import read_document, read_problem
from pipesched.files.schedule_file import ScheduleFile, read_schedule, save
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem

PROBLEM = "devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n"


def test_a_schedule_file_reads_back_and_is_the_same_each_time(tmp_path: Path) -> None:
    one = problem(3, 4)
    file = ScheduleFile(simulate(one, HEURISTICS["1f1b"].order(one)))
    written = [save(file, tmp_path / name) for name in ("a.json.gz", "b.json.gz", "c.json")]
    assert written[0].read_bytes() == written[1].read_bytes()
    assert gzip.decompress(written[0].read_bytes()) == written[2].read_bytes()
    assert read_schedule(written[0]) == read_schedule(written[2]) == file


def test_the_ending_before_says_the_format(tmp_path: Path) -> None:
    for name, text in (("one.yaml.gz", PROBLEM), ("one.JSON.GZ", '{"a": 1}')):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    assert read_problem(tmp_path / "one.yaml.gz").microbatches == 2
    assert read_problem(tmp_path / "one.yaml.gz").name == "one"
    assert read_document(tmp_path / "one.JSON.GZ") == {"a": 1}


# Without a time: names of tests would differ between the processes that run them.
WHOLE = gzip.compress(PROBLEM.encode(), mtime=0)


@pytest.mark.parametrize(
    "damaged",
    [WHOLE[:-9], PROBLEM.encode(), b"", WHOLE[:12] + b"\xff" * 30],
    ids=["short", "not compressed", "empty", "not readable"],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "one.yaml.gz"
    path.write_bytes(damaged)
    with pytest.raises(BadInput) as caught:
        read_document(path)
    (line,) = caught.value.mistakes
    assert line.startswith(str(path)) and ("not a whole file of gzip" in line or "is empty" in line)


def test_a_file_is_not_larger_than_others_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "MOST_BYTES", 1000)
    path = tmp_path / "one.yaml.gz"
    path.write_bytes(gzip.compress(b"#" * 10**6))
    with pytest.raises(BadInput, match="more than 1000 bytes"):
        read_document(path)
