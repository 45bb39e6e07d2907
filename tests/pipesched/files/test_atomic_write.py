"""Files appear whole."""

import os
import stat
from pathlib import Path

import pytest

from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "schedule.json"
    link.symlink_to(tmp_path / "there" / "latest.json")
    for content in ("old", "new"):  # the first time the file is missing
        assert write_whole(link, content) == link
        assert link.is_symlink() and (tmp_path / "there" / "latest.json").read_text() == content
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["latest.json"]


@pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")
def test_links_in_a_circle_are_refused_and_a_pipe_stays_one(tmp_path: Path) -> None:
    one, other, pipe = (tmp_path / name for name in ("one", "other", "pipe"))
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(BadInput, match="cannot be written"):
        write_whole(one, "text")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        (tmp_path / "link").symlink_to(pipe)
        write_whole(tmp_path / "link", "text")
        assert os.read(reader, 9) == b"text" and stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match="cannot be written"):
        write_whole(tmp_path / "folder", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
