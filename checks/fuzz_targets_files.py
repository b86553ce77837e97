"""The other half of `fuzz_targets.py`: Parquet files, models, features, word vectors, images."""

import io
from pathlib import Path

import numpy as np
import orjson
from fuzz_targets import RECORD, _made, _path
from PIL import Image
from safetensors.numpy import save
from sharded_corpus import tiny_model

from sightline.documents import document_from_record, document_to_record
from sightline.features import FeatureStore
from sightline.image_headers import gif_frames, png_essentials, recognise, webp_size
from sightline.images import Status, decode
from sightline.model import LinkModel
from sightline.model_files import read_tensors, read_weights
from sightline.onnx_files import Graph, read_constants
from sightline.problems import Problems, SightlineError
from sightline.readers.parquet import read_parquet, write_parquet
from sightline.vocabulary import Vocabulary
from sightline.word_vectors import read_word_vectors

_PART = b"\0part\0"


def parquet(data: bytes, folder: Path) -> None:
    """Parquet files of documents."""
    for document in read_parquet(_path(folder, "a.parquet", data), Problems()):
        orjson.dumps(document_to_record(document))


def word_vectors(data: bytes, folder: Path) -> None:
    """Word vectors of any format: finite ones, as many as words."""
    for name in ("a.txt", "a.bin"):
        try:
            found = read_word_vectors(_path(folder, name, data), None, Problems())
        except SightlineError:
            continue
        assert found.vectors.shape == (len(found.words), found.dimension)
        assert np.isfinite(found.vectors).all() and len(set(found.words)) == len(found.words)


def features(data: bytes, folder: Path) -> None:
    """A feature store: matrix, rows and manifest."""
    matrix, rows, manifest = [*data.split(_PART, 2), b"", b""][:3]
    _path(folder, "a.npy", matrix)
    _path(folder, "id2row.json", rows)
    (folder / "manifest.json").unlink(missing_ok=True)
    if manifest:
        _path(folder, "manifest.json", manifest)
    store = FeatureStore.open(folder)
    if len(store) * store.dimension < 1_000_000:
        found = store.vectors(list(store.id2row.values()))
        assert found.shape == (len(store.id2row), store.dimension)


def tensors(data: bytes, folder: Path) -> None:
    """Safetensors, and compact weights in them."""
    read_tensors(folder / "model.safetensors", data)
    read_weights(folder / "model.safetensors", data)


def model(data: bytes, folder: Path) -> None:
    """A model folder whose settings and vocabulary are any bytes."""
    if not (folder / "model.safetensors").exists():
        tiny_model().save_pretrained(folder)
    config, _, words = data.partition(_PART)
    _path(folder, "config.json", config)
    _path(folder, "vocabulary.json", words or MODEL_WORDS)
    LinkModel.from_pretrained(folder)


def vocabulary(data: bytes, folder: Path) -> None:
    """A vocabulary: it comes back as it was saved."""
    words = Vocabulary.load(_path(folder, "vocabulary.json", data))
    words.save(folder / "again.json")
    assert Vocabulary.load(folder / "again.json").words == words.words


def onnx(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """The arrays of an ONNX file; the reader raises `ValueError`."""
    try:
        read_constants(data, ["a", "b"])
    except ValueError:
        raise SightlineError("It is not such a file.") from None


def headers(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """The first bytes of images: never an error."""
    recognise(data)
    assert len(png_essentials(data)) <= max(len(data), 8)
    webp_size(data)
    assert gif_frames(data, 100) <= 101


def images(data: bytes, folder: Path) -> None:  # noqa: ARG001
    """Images: pixels or a status with a reason."""
    found = decode(data, 32)
    assert (found.pixels is not None) == (found.status is Status.ok)
    assert found.reason or found.status is Status.ok


def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 3), np.float16))
    return stream.getvalue()


def _binary() -> bytes:
    return b"2 3\n" + b"".join(w + b" " + np.ones(3, "<f4").tobytes() + b"\n" for w in (b"a", b"b"))


def _npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, words=np.array(["a", "b"]), vectors=np.ones((2, 3), np.float32))
    return stream.getvalue()


def _graph() -> bytes:
    graph = Graph("g")
    graph.constant("a", np.ones((2, 3), np.float32))
    graph.node("Add", [graph.input("x", ["n", 3]), "a"], "y", axis=1, pads=[1, 2])
    graph.output("y", ["n", 3])
    return graph.to_bytes({"source": "test"})


def _pictures() -> list[bytes]:
    made = []
    image = Image.fromarray(np.arange(243, dtype=np.uint8).reshape(9, 9, 3))
    for kind in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"):
        stream = io.BytesIO()
        image.save(stream, kind)
        made.append(stream.getvalue())
    return made


def _parquet() -> bytes:
    return _made(lambda path: write_parquet([document_from_record(RECORD)], path))


def _model_files() -> tuple[bytes, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tiny_model().save_pretrained(Path(folder))
        names = ("config.json", "vocabulary.json")
        return tuple((Path(folder) / name).read_bytes() for name in names)


MODEL_CONFIG, MODEL_WORDS = _model_files()

TARGETS = {
    "parquet": (parquet, lambda: [_parquet()]),
    "word-vectors": (word_vectors, lambda: [
        _binary(), _npz(), b"2 3\na 1 2 3\nb 4 5 6\n", b"a 1 2\nb 3 4\n"]),
    "features": (features, lambda: [_npy() + _PART + b'{"a": 0, "b": 1}' + _PART + b'{"rows": 2}']),
    "tensors": (tensors, lambda: [save({"a": np.ones((2, 3), np.float32)}, {"sightline": "{}"})]),
    "model": (model, lambda: [MODEL_CONFIG, MODEL_CONFIG + _PART + MODEL_WORDS]),
    "vocabulary": (vocabulary, lambda: [
        MODEL_WORDS, orjson.dumps({"format": 1, "words": ["<unk>"]})]),
    "onnx": (onnx, lambda: [_graph()]),
    "headers": (headers, _pictures),
    "images": (images, _pictures),
}  # fmt: skip
