import pytest

from sightline.image_headers import EXTENSIONS
from sightline.images import FORMATS
from sightline.problems import SightlineError
from sightline.unpacking import image_extension, unpack_image

JPEG = b"\xff\xd8\xff" + b"j" * 700
PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 20


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_harmless_paths_are_kept(tmp_path):
    names = ["a.jpg", "images/ж б.jpeg", "photos/2019/x.y.PNG", "images/" + "n" * 190 + ".jpg"]
    for name in names:
        assert unpack_image(JPEG, name, tmp_path) == name
        assert (tmp_path / name).read_bytes() == JPEG
    assert everything(tmp_path) == sorted(names)


@pytest.mark.parametrize(
    "name",
    [
        "../up.jpg",
        "images/../../up.jpg",
        "/up.jpg",
        "./a.jpg",
        "a//b.jpg",
        "https://a.org/b.jpg",
        "C:\\windows\\a.jpg",
        "a\\b.jpg",
        ".hidden.jpg",
        ".git/a.jpg",
        "documents.jsonl",
        "features/id2row.json",
        "a.jpg/",
        "a\nb.jpg",
        "a\0b.jpg",
        "\ud800.jpg",
        "n" * 300 + ".jpg",
        "a/" * 20 + "b.jpg",
        "b9040a0dbb22",
        "",
        " ",
    ],
)
def test_other_paths_are_replaced(name, tmp_path):
    folder = tmp_path / "in" / "out"
    (made_up,) = {unpack_image(PNG, name, folder) for _ in range(2)}
    assert made_up.startswith("images/") and made_up.endswith(".png")
    assert everything(tmp_path) == [f"in/out/{made_up}"]


def test_what_is_there_is_never_changed(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"mine")
    (tmp_path / "b.jpg").mkdir()
    (tmp_path / "c.jpg").symlink_to(tmp_path / "elsewhere.jpg")
    names = ["a.jpg", "b.jpg", "c.jpg", "a.jpg/d.jpg"]
    placed = {unpack_image(JPEG, name, tmp_path) for name in names}
    (made_up,) = placed  # one content, one file
    assert everything(tmp_path) == ["a.jpg", made_up]
    assert (tmp_path / "a.jpg").read_bytes() == b"mine"
    assert unpack_image(JPEG, "e.jpg", tmp_path) == "e.jpg"
    assert unpack_image(JPEG, "e.jpg", tmp_path) == "e.jpg"
    assert unpack_image(PNG, "e.jpg", tmp_path) != "e.jpg"
    (tmp_path / made_up).write_bytes(b"cut")
    with pytest.raises(SightlineError, match="is in the way"):
        unpack_image(JPEG, "a.jpg", tmp_path)


@pytest.mark.parametrize("data", [b"", b"root:x:0:0", b"<svg>", b"%PDF-1.4", b"\x1f\x8b"])
def test_only_images_are_written(data, tmp_path):
    assert image_extension(data) is None
    assert unpack_image(data, "a.jpg", tmp_path) is None
    assert everything(tmp_path) == []


def test_every_format_that_is_decoded_has_an_extension():
    assert set(EXTENSIONS) >= set(FORMATS)
