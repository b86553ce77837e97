"""Figures: real files, text that fits, pictures that do no harm, the documents they choose."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

pytest.importorskip("matplotlib")

from sightline.document_measures import DocumentMeasures
from sightline.documents import Document
from sightline.report.figure_links import Prediction, draw_links, draw_sentences, typical, varied
from sightline.report.figures import (
    Curve,
    curve_of,
    draw_dynamics,
    drawable_text,
    fitted_lines,
    missing_characters,
    shortened,
    text_width,
)
from sightline.thumbnails import image_file, read_thumbnails

HOSTILE = "<script>alert(1)</script> --> $\\frac{1}{2}$ & \x00\x1b[31m \u202etxt \ud83d end"


def check(files, texts=()):
    """A PNG with something on it and an SVG that parses; returns the SVG's text."""
    png, svg = files
    with Image.open(png) as picture:
        assert picture.format == "PNG" and min(picture.size) > 300
        colours = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert tuple(colours[0]) == (255, 255, 255)
        assert len(np.unique(colours[::20], axis=0)) > 10
    text = svg.read_text()
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert not tags & {"script", "foreignObject", "a"}
    assert not re.search(r'href="(?!#|data:image/jpeg)', text)
    return text


def epochs(count, auc=True):
    return [
        {"epoch": n, "validation_loss": 0.4 / n, "validation_auc": 50 + n if auc else None,
         "best": True}
        for n in range(1, count + 1)
    ]  # fmt: skip


# ---- training curves


def test_a_curve_is_the_negative_validation_loss_and_the_auc():
    curve = curve_of("AP", epochs(3))
    assert curve.objective == [-0.4, -0.2, pytest.approx(-0.4 / 3)]
    assert (curve.auc, curve.best_epoch, curve.agreement) == ([51, 52, 53], 3, pytest.approx(1))
    assert curve_of("unknown links", epochs(3, auc=False)).auc is None
    assert curve_of("Random", []) is None
    assert Curve("flat", [1, 2, 3], [-1.0, -1.0, -1.0], [50.0, 51.0, 52.0]).agreement is None


@pytest.mark.parametrize("count", [1, 4])
def test_dynamics(tmp_path, count):
    curves = [curve_of(f"{HOSTILE}{n}", epochs(n + 1, auc=n != 2)) for n in range(count)]
    files = draw_dynamics(curves, tmp_path / "deep" / "dynamics")
    check(files)
    again = draw_dynamics(curves, tmp_path / "again")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


# ---- text


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=120), st.integers(1, 4))
def test_lines_fit_and_lose_nothing_but_the_end(text, lines):
    found = fitted_lines(text, 1.5, lines, 8)
    assert len(found) <= lines
    assert all(text_width(line, 8) <= 1.5 or len(line) <= 1 for line in found)
    plain = drawable_text(text).replace(" ", "")
    joined = "".join(found).replace(" ", "")
    assert joined == plain or (joined.endswith("…") and plain.startswith(joined[:-1]))


def test_long_words_and_chinese_are_broken_too():
    for text in ("x" * 400, "你好" * 200, "word " * 200):
        found = fitted_lines(text, 2, 3, 8)
        assert len(found) == 3 and found[-1].endswith("…")
        assert text_width(found[0], 8) > 1.5


def test_what_cannot_be_drawn_is_dropped_or_named():
    assert "\x00" not in drawable_text(HOSTILE) and "\u202e" not in drawable_text(HOSTILE)
    assert missing_characters(["plain text, é, ρ, ✓"]) == ""
    # A private character that no font has.
    assert missing_characters(["a\U000f1234b"]) == "\U000f1234"
    assert shortened("a" * 50, 11) == "aaaaa…aaaaa"


# ---- predictions


@pytest.fixture
def prediction():
    sentences = [f"{HOSTILE} number {n} " + "long " * 40 * (n % 2) for n in range(7)]
    images = tuple(f"images/v{n}.jpg" for n in range(6))
    links = ((0, 0), (1, 2), (3, 1))
    similarity_SV = np.random.default_rng(0).normal(size=(7, 6))
    return Prediction(Document(HOSTILE, tuple(sentences), images, links), similarity_SV, 61.2)


def test_predictions_are_drawn_with_and_without_pictures_and_text(prediction, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 255, (40, 90, 3), dtype=np.uint8)
    thumbnails = dict.fromkeys(prediction.document.images[:3], pixels)
    for name, draw in (("links", draw_links), ("sentences", draw_sentences)):
        with_all = check(draw(prediction, thumbnails, tmp_path / name))
        assert "number" in with_all and "data:image/jpeg" in with_all
        bare = check(draw(prediction, {}, tmp_path / f"{name}-bare", text=False))
        assert "number" not in bare and "data:image" not in bare


def test_words_that_look_like_a_picture_stay_words(tmp_path):
    words = "data:image/png;base64,iVBORw0KGgo="
    prediction = Prediction(Document("d", (words,), ("v",)), np.array([[0.4]]))
    assert "base64" in draw_sentences(prediction, {}, tmp_path / "words")[1].read_text()


def test_pictures_and_sentences_say_whose_they_are(prediction, tmp_path):
    extra = {"title": "How $to", "license": "CC BY 4.0", "source": 3, "author": " "}
    credited = replace(prediction, document=replace(prediction.document, extra=extra))
    for name, draw in (("links", draw_links), ("sentences", draw_sentences)):
        assert "How $to, CC BY 4.0" in check(draw(credited, {}, tmp_path / name))
        assert "CC BY" not in check(draw(credited, {}, tmp_path / f"{name}-bare", text=False))
        assert "CC BY" not in check(draw(prediction, {}, tmp_path / f"{name}-unknown"))


def test_a_document_with_one_link_or_none_can_be_drawn(tmp_path):
    document = Document("d", ("one",), ("v",), None)
    for value in (0.4, -0.4):
        prediction = Prediction(document, np.array([[value]]))
        check(draw_links(prediction, {}, tmp_path / "links"))
        check(draw_sentences(prediction, {}, tmp_path / "sentences"))


def test_examples_are_close_to_the_average_and_have_links_to_show():
    def document(id, size):
        return Document(id, ("s",) * size, ("v",) * size)

    documents = {id: document(id, size) for id, size in (("a", 9), ("b", 9), ("c", 5), ("d", 2))}
    auc = {"a": 90.0, "b": 61.0, "c": 59.0, "d": 60.0, "not there": 0.0}
    assert [d.id for d in typical(auc, documents, 3)] == ["b", "c", "a"]
    assert typical({}, documents, 3) == []


def test_the_long_document_is_the_most_varied_of_the_longest():
    def measures(sentences, image_spread, text_spread):
        count = len(sentences)
        return DocumentMeasures(
            [f"d{n}" for n in range(count)], np.array(sentences), np.full(count, 6),
            np.array(image_spread, float), np.zeros((count, 1)), np.array(text_spread, float),
            np.zeros((count, 1)), 0,
        )  # fmt: skip

    assert varied(measures([10, 90, 100, 95], [9, 1, 2, 3], [9, 1, 5, 1])) == "d2"
    assert varied(measures([3], [0], [0])) == "d0"
    assert varied(measures([], [], [])) is None


# ---- thumbnails


def test_thumbnails_are_small_and_stay_within_the_corpus(tmp_path):
    root = tmp_path / "corpus"
    (root / "images").mkdir(parents=True)
    Image.new("RGB", (900, 300), "teal").save(root / "images" / "wide.jpg")
    Image.new("RGB", (30, 40), "gold").save(root / "images" / "small.png")
    (root / "images" / "broken.jpg").write_bytes(b"\xff\xd8\xff nonsense")
    Image.new("RGB", (50, 50), "red").save(tmp_path / "secret.png")
    names = ["images/wide.jpg", "small", "images/broken.jpg", "absent", "a\0b", "x" * 5000]
    names += ["../secret.png", str(tmp_path / "secret.png"), "images/../../secret.png"]
    found = read_thumbnails(root, names, 64, workers=1)
    assert set(found) == {"images/wide.jpg", "small"}
    # Three times as wide as high is cut to twice.
    assert found["images/wide.jpg"].shape == (32, 64, 3)
    assert found["small"].shape == (40, 30, 3)
    assert image_file(root, "..\\secret.png") is None
