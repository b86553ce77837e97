"""Places: paths and addresses, read, listed and written alike."""

from pathlib import Path

import pytest

from sightline import storage
from sightline.problems import SightlineError

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (Path("/a/b"), "/a/b"),
        ("file:///a/b", "/a/b"),
        (Path("file:///a/b"), "/a/b"),
        (Path("s3://bucket/x/y"), "s3://bucket/x/y"),
        ("gs://bucket/x/", "gs://bucket/x"),
        ("relative", str(Path.cwd() / "relative")),
    ],
)
def test_what_a_path_means(given, place):
    assert storage.place_of(given) == place
    assert storage.is_remote(place) == ("://" in place)


@pytest.fixture(params=["folder", "memory"])
def root(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "root")
    return f"memory://{tmp_path.name}"


def test_write_list_read(root, tmp_path):
    storage.write_bytes(storage.joined(root, "b.jsonl"), b"two")
    storage.write_bytes(storage.joined(root, "a.jsonl"), b"one")
    storage.write_bytes(storage.joined(root, "_stats.json"), b"{}")
    storage.write_bytes(storage.joined(root, "deeper/c.jsonl"), b"three")
    assert storage.files_in(root) == {"a.jsonl": 3, "b.jsonl": 3}
    assert storage.is_folder(root)
    assert not storage.is_folder(storage.joined(root, "a.jsonl"))
    assert storage.read_bytes(storage.joined(root, "b.jsonl")) == b"two"
    assert storage.read_bytes(storage.joined(root, "none")) is None
    assert storage.size_of(storage.joined(root, "none")) is None
    with storage.local_copy(storage.joined(root, "b.jsonl")) as path:
        assert path.name == "b.jsonl"
        assert path.read_bytes() == b"two"
    with storage.local_copy(root) as folder:
        assert (folder / "a.jsonl").read_bytes() == b"one"
    assert folder.exists() == (not storage.is_remote(root))


def test_upload(tmp_path):
    (tmp_path / "x").write_bytes(b"content")
    place = f"memory://{tmp_path.name}/y/x"
    storage.upload(tmp_path / "x", place)
    assert storage.read_bytes(place) == b"content"


def test_what_cannot_be_reached_is_named(tmp_path):
    with (
        pytest.raises(SightlineError, match="memory://nothing/here"),
        storage.local_copy("memory://nothing/here"),
    ):
        pass
    with pytest.raises(SightlineError, match="nosuchscheme://x"):
        storage.size_of("nosuchscheme://x/y")
