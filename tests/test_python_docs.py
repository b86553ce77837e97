"""Every code block of docs/python.md runs, and mypy in strict mode is content with such code."""

import re
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import orjson
import pytest
from PIL import Image

import sightline
from sightline import read
from sightline.features import FeatureStore, write_feature_store
from sightline.model import BUNDLED
from sightline.readers.native import write_jsonl

PAGE = (Path(__file__).parents[1] / "docs/python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

#: Uses every public name; what each gives is said, so that a lost type is an error.
SCRIPT = """
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sightline
from sightline import metrics


def documents(path: Path) -> Iterator[sightline.Document]:
    corpus: sightline.Corpus = sightline.read(path, split="test", strict=True)
    yield from corpus
    yield from sightline.documents_from([{"id": "a"}], folder=path)


def linked(model: sightline.LinkModel, path: Path) -> list[sightline.DocumentLinks]:
    store = sightline.FeatureStore.open(path / "features")
    return [model.link(document, "top-k", 3, features=store) for document in documents(path)]


def main() -> None:
    model = sightline.LinkModel.from_pretrained("default", revision=None)
    results = linked(model, Path("corpus"))
    first: sightline.Link = results[0][0]
    confidence: float | None = first.confidence
    names: list[str] = list(sightline.links_table(results, every_image=True).columns)
    one: sightline.Document = results[0].document
    matrix: NDArray[np.float32] = model.similarity_matrix(one)
    auc: float = metrics.link_auc_score(one.links, matrix)
    each: NDArray[np.float64] = metrics.precision_at_k([one.links], [matrix], 5, average=None)
    both: dict[str, float] = metrics.link_scores([[(0, 1)]], [[[0.5, 0.25]]])
    scores: sightline.Evaluation = sightline.evaluate(model, "corpus")
    mean: float | int | None = scores["auc"]
    print(confidence, names, auc, each, both, mean, scores.scores[0].auc, one.to_dict()["id"])
    try:
        results[0].to_pandas()
    except sightline.SightlineError as error:
        print(error)
"""
WRONG = """
import sightline

sightline.LinkModel.from_pretrained(3)
sightline.links()
x: int = sightline.read("corpus")
"""
#: What large packages say of their own types is no matter of ours, and takes a minute to read.
CONFIGURATION = """
[mypy]
strict = True
[mypy-torch.*,transformers.*,huggingface_hub.*,pandas.*,pyarrow.*,scipy.*,numba.*,onnxruntime.*,\
safetensors.*,fsspec.*,typer.*,rich.*,PIL.*,selectolax.*,pysbd.*,markdown_it.*]
follow_imports = skip
ignore_missing_imports = True
"""


@pytest.fixture
def folder(tmp_path, textbooks, monkeypatch):
    """A small corpus, link records of it, and documents without features."""
    documents = list(islice(read(textbooks, split="test"), 5))
    (tmp_path / "CORPUS").mkdir()
    write_jsonl(documents, tmp_path / "CORPUS/documents.jsonl")
    images = list(dict.fromkeys(image for document in documents for image in document.images))
    store = FeatureStore.open(textbooks / "features")
    write_feature_store(
        tmp_path / "CORPUS/features", store.backbone, list(map(store.image_id, images)),
        store.vectors(store.rows(images)), store.manifest,
    )  # fmt: skip
    plain = [replace(document, extra={}) for document in documents]
    write_jsonl(plain, tmp_path / "documents.jsonl")
    record = {"id": "a", "links": [], "images": [{"id": "x", "status": "missing", "reason": ""}],
              "sentences": ["A boat."]}  # fmt: skip
    (tmp_path / "links.jsonl").write_bytes(orjson.dumps(record) + b"\n")
    for name in ("boat.jpg", "cup.jpg"):
        Image.new("RGB", (300, 200), "teal").save(tmp_path / name)
    (tmp_path / "article.html").write_text("<p>A boat leaves.</p><img src='boat.jpg'>")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_blocks_run(folder, capsys):
    names, ran = {}, 0
    for block in BLOCKS:
        if re.search(r"^(import|from) datasets", block, re.MULTILINE):
            continue
        exec(block.replace('"owner/name", revision="v1.0"', repr(str(BUNDLED))), names)
        ran += 1
    assert ran == 13
    cosines = names["sentence_NE"] @ names["image_ME"].T
    assert np.allclose(cosines, names["model"].similarity_matrix(names["trip"]))
    assert set(names["frame"]["id"]) <= {document.id for document in names["documents"]}
    assert len(names["frame"]) > 5
    printed = capsys.readouterr().out
    for words in (
        "DocumentLinks('trip'",
        "0.75",
        "missing",
        "['trip']",
        "rows:2: id",
        "nowhere.jsonl: no",
    ):
        assert words in printed
    for words in ("'skipped': 0", "efficientnet-lite0"):
        assert words in printed


def test_the_blocks_on_datasets_run(folder):
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    names = {"sightline": sightline, "documents": list(read("CORPUS"))}
    blocks = [b for b in BLOCKS if re.search(r"^(import|from) datasets", b, re.MULTILINE)]
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2
    assert len(list(names["again"])) == len(names["dataset"]) == 5


def test_the_page_names_every_public_name():
    for name in sightline.__all__:
        assert re.search(rf"\b{name}\b", PAGE), name


def test_scripts_are_checked_in_strict_mode(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "good.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "good.py", "wrong.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines[:-1]] == [
        "wrong.py:4", "wrong.py:5", "wrong.py:6",
    ], done.stdout + done.stderr  # fmt: skip
    assert (Path(sightline.__file__).parent / "py.typed").exists()
