"""Files appear whole."""

import os
import stat
from pathlib import Path

import pytest

from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, refuse_unwritable, write_whole


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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="links of /proc")
def test_a_link_of_the_system_to_a_pipe_is_written_to() -> None:
    """As `/dev/stdout` in front of a pipe, which leads to no path of a file."""
    reader, writer = os.pipe()
    try:
        path = Path(f"/proc/self/fd/{writer}")
        refuse_unwritable(path)
        assert write_whole(path, "text") == path and os.read(reader, 9) == b"text"
    finally:
        os.close(reader)
        os.close(writer)


def test_what_cannot_be_written_is_said_before_there_is_anything_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    refuse_unwritable(tmp_path / "new" / "deep" / "out.png")
    refuse_unwritable(tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    for path in (tmp_path / "folder", tmp_path / "file" / "out.png", tmp_path / "file" / "deep" / "out.png"):
        with pytest.raises(BadInput, match=r"found a folder; allowed: the name of|cannot be written"):
            refuse_unwritable(path)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_folder_that_a_link_leads_to_is_made(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "there" / "new")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "plots").symlink_to(tmp_path / "elsewhere" / "plots")
    refuse_unwritable(tmp_path / "plots" / "out.png")
    assert write_whole(tmp_path / "plots" / "out.png", "text").read_text() == "text"
    assert make_folder(tmp_path / "out") == tmp_path / "out"
    assert (tmp_path / "there" / "new").is_dir() and (tmp_path / "out").is_symlink()
    with pytest.raises(BadInput, match="circle: cannot be written into"):
        make_folder(tmp_path / "circle")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match="cannot be written"):
        write_whole(tmp_path / "folder", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
