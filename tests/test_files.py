import os
import resource
import stat
from contextlib import contextmanager

import pytest

from sightline.files import atomic_writer, remove_leftovers, write_atomically
from sightline.problems import SightlineError


@contextmanager
def largest_file(size):
    """Make writes beyond `size` bytes fail, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_content_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.json"
    write_atomically(path, b"old, and longer")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.json"]


def test_until_the_block_ends_the_old_file_stands(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with atomic_writer(path) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_an_error_in_the_block_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_writer(path) as handle:
        handle.write(b"half of it")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.json"]


def test_a_full_disk_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with largest_file(1000), pytest.raises(SightlineError) as raised:
        write_atomically(path, b"x" * 100_000)
    assert str(raised.value) == (
        f"{path} cannot be written: File too large. What stood there before is unchanged."
    )
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.json"]


def test_an_error_about_another_file_passes_through(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_writer(tmp_path / "a.json") as handle:
        handle.write((tmp_path / "missing").read_bytes())
    assert names(tmp_path) == []


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "missing" / "a.json"
    with pytest.raises(SightlineError, match=r"there is no folder .*missing; make it first"):
        write_atomically(path, b"")


def test_folders_and_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in ((tmp_path, "it is a folder"), (tmp_path / "pipe", "not a regular file")):
        with pytest.raises(SightlineError, match=reason):
            write_atomically(path, b"")


def test_new_files_get_the_usual_permissions_and_old_ones_keep_theirs(tmp_path):
    plain, new, old = tmp_path / "plain", tmp_path / "new", tmp_path / "old"
    plain.write_bytes(b"")
    old.write_bytes(b"")
    old.chmod(0o640)
    write_atomically(new, b"")
    write_atomically(old, b"")
    assert new.stat().st_mode == plain.stat().st_mode
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    path = tmp_path / ("a" * 255)
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"


def test_what_killed_writers_leave_is_removed_and_nothing_else(tmp_path):
    (tmp_path / ".sightline-0123.tmp").write_bytes(b"half")
    (tmp_path / ".sightline-notes").write_bytes(b"mine")
    (tmp_path / "model").write_bytes(b"whole")
    remove_leftovers(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".sightline-notes", "model"]
    remove_leftovers(tmp_path / "absent")
