"""Features out of a store or out of files: every image has a status, none loses its place."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sightline import image_files
from sightline.backbones import Backbone, Preprocessing, load_backbone
from sightline.corpus import read
from sightline.documents import Document
from sightline.extraction import extract_features
from sightline.features import FeatureStore, write_feature_store
from sightline.image_features import ImageFiles, StoredImages, groups
from sightline.link_records import link_records, open_images
from sightline.model import LinkModel
from sightline.model_files import expected_shapes
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary


class MeanColour:
    """A network whose features can be told by looking at the image."""

    def features(self, batch):
        return batch.mean((2, 3))


@pytest.fixture
def backbone():
    way = Preprocessing(8, 8, "bilinear", (0, 0, 0), (1, 1, 1))
    return Backbone("mean-colour", 3, way, "0" * 64, MeanColour())


@pytest.fixture
def folder(tmp_path):
    """Forty plain images, each of its own grey, and one that is none."""
    for grey in range(40):
        Image.new("RGB", (10, 12), (grey, grey, grey)).save(tmp_path / f"{grey}.png")
    (tmp_path / "text.png").write_text("no image")
    return tmp_path


def documents(folder):
    return [
        Document("a", ("s",), tuple(f"{grey}.png" for grey in range(39, -1, -1)), folder=folder),
        Document("b", ("s",), ("text.png", "7.png", "gone.png", "3.png", "7.png"), folder=folder),
        Document("c", ("s",), (), folder=folder),
    ]


def test_files_keep_their_places_and_are_read_once(backbone, folder, monkeypatch):
    decoded = []
    real = image_files.decode
    monkeypatch.setattr(
        image_files, "decode", lambda *a, **k: decoded.append(a[0]) or real(*a, **k)
    )
    statuses, vectors = ImageFiles(backbone).read(documents(folder))
    assert [s["status"] for s in statuses[0]] == ["ok"] * 40
    assert [(s["id"], s["status"]) for s in statuses[1]] == [
        ("text.png", "undecodable"), ("7.png", "ok"), ("gone.png", "missing"),
        ("3.png", "ok"), ("7.png", "ok"),
    ]  # fmt: skip
    assert all((s["reason"] is None) == (s["status"] == "ok") for s in statuses[0] + statuses[1])
    assert statuses[2] == []
    np.testing.assert_allclose(vectors[:, 0], [*range(39, -1, -1), 7, 3, 7])
    assert len(decoded) == len(set(decoded)) == 42


def test_nothing_to_read(backbone, folder):
    statuses, vectors = ImageFiles(backbone).read(documents(folder)[2:])
    assert (statuses, vectors.shape) == ([[]], (0, 3))


def test_a_store_says_what_it_lacks(tmp_path):
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    write_feature_store(tmp_path / "f", "net", ["a", "b", "c"], rows, {}, np.float32)
    matrix = np.load(tmp_path / "f" / "net.npy", mmap_mode="r+")
    matrix[1, 1] = np.nan
    matrix.flush()
    source = StoredImages(FeatureStore.open(tmp_path / "f"))
    document = Document("d", ("s",), ("x/c.jpg", "b", "nothing", "a"))
    statuses, vectors = source.read([document, document])
    assert [s["status"] for s in statuses[1]] == ["ok", "undecodable", "missing", "ok"]
    np.testing.assert_array_equal(vectors, rows[[2, 0, 2, 0]])


def test_groups():
    assert list(groups(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(groups([], 2)) == []


# ---- a trained model links image files where there is no store


def link_model(backbone):
    settings = Settings(dimension=8, sentence_encoder="attention", word_dimension=5)
    rng = np.random.default_rng(0)
    shapes = expected_shapes(settings, 3, 1280)
    weights = {name: rng.normal(0, 0.3, shape).astype("f4") for name, shape in shapes.items()}
    return LinkModel(settings, Vocabulary(("<unk>", "dog", "cat")), weights, backbone)


@pytest.fixture
def corpus(tmp_path):
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
        small.resize((400, 300)).save(tmp_path / f"{name}.jpg")
    record = {"id": "d", "sentences": ["A dog.", "A cat."], "images": ["a.jpg", "no.jpg", "b.jpg"]}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(record))
    return read(tmp_path / "corpus.jsonl")


def test_a_trained_model_links_files_as_it_links_their_features(corpus, tmp_path):
    model = link_model("efficientnet-lite0")
    said = []
    source = open_images(model, corpus, say=said.append)
    assert isinstance(source, ImageFiles)
    assert len(said) == 1 and "--features" in said[0]
    (files,) = link_records(model, corpus, source, matrix=True)
    assert [image["status"] for image in files["images"]] == ["ok", "missing", "ok"]
    extract_features([corpus], tmp_path / "features", load_backbone(threads=1), workers=0)
    source = open_images(model, corpus)
    assert isinstance(source, StoredImages)
    (stored,) = link_records(model, corpus, source, matrix=True)
    np.testing.assert_allclose(
        np.array(files["matrix"], float), np.array(stored["matrix"], float), atol=2e-3
    )
    assert np.isnan(np.array(files["matrix"], float)).any(axis=0).tolist() == [False, True, False]


def test_python_links_image_files_too(corpus, tmp_path):
    model = link_model("efficientnet-lite0")
    (document,) = corpus
    document = replace(document, images=("a.jpg", "b.jpg"))
    matrix = model.similarity_matrix(document)
    extract_features([corpus], tmp_path / "features", load_backbone(threads=1), workers=0)
    np.testing.assert_allclose(matrix, model.similarity_matrix(document), atol=2e-3)
    with pytest.raises(SightlineError, match="'d' has no image features beside it"):
        link_model("densenet169").link(replace(document, folder=tmp_path / "elsewhere"))


def copies(photo):
    """The same photograph as other cameras and programs would have saved it."""
    turned = Image.Exif()
    turned[0x0112] = 6
    large = photo.resize((5184, 3888), Image.Resampling.BICUBIC)
    deep = Image.fromarray(np.asarray(photo.convert("L")).astype(np.uint16) * 257)
    yield "rotated.jpg", photo.rotate(90, expand=True), {"quality": 95, "exif": turned}
    yield "cmyk.jpg", photo.convert("CMYK"), {"quality": 95}
    yield "large.jpg", large, {"quality": 90}
    yield "alpha.png", photo.convert("RGBA"), {}
    yield "plain.webp", photo, {"lossless": True}
    yield "plain.tiff", photo, {}
    yield "deep.png", deep, {}


def test_copies_in_other_encodings_give_the_same_links(tmp_path):
    """Rotated by EXIF, CMYK, of 20 megapixels, 16 bits deep and so on."""
    from sklearn.datasets import load_sample_image

    photos = {
        name: Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")
    }
    for name, photo in photos.items():
        size = (photo.height * 4 // 3, photo.height)  # so that the large copy keeps the shape
        photos[name] = photo = photo.crop((20, 0, 20 + size[0], size[1]))
        (tmp_path / name).mkdir()
        photo.save(tmp_path / name / "plain.png")
        photo.convert("L").save(tmp_path / name / "grey.png")
        for file, copy, options in copies(photo):
            copy.save(tmp_path / name / file, **options)
    model = link_model("efficientnet-lite0")
    sentences = ("A dog.", "A cat.", "A dog and a cat.")

    def linked(file):
        images = tuple(f"{name}/{file}" for name in photos)
        document = Document(file, sentences, images, folder=tmp_path)
        (record,) = link_records(model, [document], ImageFiles(model.image_backbone), matrix=True)
        assert [image["status"] for image in record["images"]] == ["ok", "ok"]
        return [(found["sentence"], found["image"]) for found in record["links"]], record["matrix"]

    plain, grey = linked("plain.png"), linked("grey.png")
    assert np.abs(np.subtract(plain[1], grey[1])).max() > 0.02  # the model does see a difference
    for file in sorted(path.name for path in (tmp_path / "china.jpg").iterdir()):
        links, matrix = linked(file)
        expected = grey if file == "deep.png" else plain
        if file != "grey.png":
            assert links == expected[0], file
            np.testing.assert_allclose(matrix, expected[1], atol=0.02, err_msg=file)


@pytest.mark.parametrize("backbone", ["densenet169", None])
def test_without_features_or_the_weights_to_make_them_the_error_says_what_to_do(corpus, backbone):
    with pytest.raises(SightlineError, match="name a feature store with --features"):
        open_images(link_model(backbone), corpus)


def test_a_trained_model_refuses_the_features_of_another_backbone(corpus, tmp_path):
    rows = np.ones((1, 1280), np.float32)
    write_feature_store(tmp_path / "features", "another-net", ["a"], rows, {})
    with pytest.raises(SightlineError, match="come from another-net"):
        open_images(link_model("efficientnet-lite0"), corpus)


def test_a_run_in_which_no_image_can_be_used_has_failed(corpus, tmp_path):
    link_model("efficientnet-lite0").save_pretrained(tmp_path / "model")
    for image in tmp_path.glob("*.jpg"):
        image.unlink()
    command = [sys.executable, "-m", "sightline", "link", str(corpus.path)]
    command += ["--model", str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No image could be used" in done.stderr
    assert [i["status"] for i in json.loads(done.stdout)["images"]] == ["missing"] * 3
