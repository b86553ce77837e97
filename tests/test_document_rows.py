"""Rows out of memory as a corpus: dictionaries, arrays, pictures, `datasets`."""

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image
from service_helpers import photograph, tiny_model

import sightline
from sightline import Document, SightlineError, documents_from, evaluate, read
from sightline.problems import ProblemError, Problems
from sightline.readers.native import write_jsonl
from sightline.readers.parquet import write_parquet

ROW = {"id": "a", "sentences": ["A dog.", "A cat."], "images": ["x.jpg"], "links": [[0, 0]]}
#: Unknown links first, then none, then some; ragged, with a further key that only one has.
DOCUMENTS = [
    Document("a", ("A dog.",), ("x.jpg",)),
    Document("b", ("A cat.", "It sleeps."), ("y.jpg", "z.jpg"), (), "val"),
    Document("c", ("A hat.", "It fits."), ("w.jpg",), ((1, 0),), "test", {"title": "Hats"}),
]


def test_rows_are_documents_like_those_of_a_file(tmp_path):
    write_jsonl(DOCUMENTS, tmp_path / "documents.jsonl")
    corpus = documents_from([document.to_dict() for document in DOCUMENTS], folder=tmp_path)
    assert list(corpus) == list(read(tmp_path)) == DOCUMENTS
    assert [document.folder for document in corpus] == [tmp_path] * 3
    assert list(corpus.documents("validation")) == DOCUMENTS[1:2]
    with pytest.raises(SightlineError, match="no document has the split 'val'"):
        list(documents_from([ROW], split="val"))
    assert repr(corpus) == "Corpus('rows')"


def test_a_document_has_all_its_fields_as_a_dictionary():
    assert DOCUMENTS[0].to_dict() == {
        "id": "a", "sentences": ["A dog."], "images": ["x.jpg"], "links": None, "split": None,
    }  # fmt: skip
    for document in DOCUMENTS:
        assert Document.from_dict(document.to_dict()) == document
    with pytest.raises(SightlineError, match="id: expected a non-empty string"):
        Document.from_dict({"sentences": ["x"], "images": ["y"]})


def test_a_bad_row_is_a_problem_with_its_number_once():
    rows = [ROW, {"id": ""}, 3, {**ROW, "links": [[9, 0]]}, {**ROW, "images": [None]}]
    corpus = documents_from(row for row in rows)
    for _ in range(2):  # a generator, and yet it can be gone through again
        assert [document.id for document in corpus] == ["a"]
    assert corpus.problems.count == 4
    assert [(one.file, one.line, one.field) for one in corpus.problems.first] == [
        ("rows", 2, "id"), ("rows", 3, None), ("rows", 4, "links[0]"), ("rows", 5, "images[0]"),
    ]  # fmt: skip
    with pytest.raises(ProblemError, match="rows:2: id"):
        list(documents_from(rows, strict=True))
    with pytest.raises(ValueError, match="contradicts"):
        documents_from(rows, strict=True, problems=Problems())


def test_arrays_and_tuples_stand_for_lists():
    row = {
        "id": np.str_("a"), "sentences": np.array(["A dog.", "A cat."]), "images": ("x.jpg",),
        "links": np.array([[1, 0]]), "split": None, "sizes": np.array([1.5]), "note": None,
    }  # fmt: skip
    (document,) = documents_from([row])
    assert document == Document("a", ("A dog.", "A cat."), ("x.jpg",), ((1, 0),), None,
                                {"sizes": [1.5]})  # fmt: skip
    (ragged,) = documents_from([{**row, "links": [np.array([0, 0]), (1, 0)]}])
    assert ragged.links == ((0, 0), (1, 0))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"train": [ROW], "test": [ROW]}, "one of its parts: 'train', 'test'"),
        (pyarrow.table({"id": ["a"]}), r"table\.to_pylist\(\)"),
        (pyarrow.table({"id": ["a"]}).to_pandas(), r"table\.to_dict\('records'\)"),
    ],
)
def test_what_gives_columns_in_place_of_rows_is_refused(rows, words):
    with pytest.raises(SightlineError, match=words):
        documents_from(rows)


def test_images_themselves_are_written_to_files(tmp_path):
    jpeg, png = photograph(1), photograph(2, form="PNG")
    picture = Image.open(io.BytesIO(png))
    cmyk = Image.new("CMYK", (8, 8))
    images = [
        jpeg, {"bytes": jpeg, "path": "C:\\photos/A dog.v2.jpg"}, {"bytes": None, "path": "p.jpg"},
        picture, cmyk, Path("q.jpg"), "r.jpg", b"no image", {"bytes": png, "path": "../../../x"},
    ]  # fmt: skip
    corpus = documents_from([{**ROW, "images": images}] * 2, folder=tmp_path / "new")
    first, second = corpus
    assert first == second
    names = first.images
    assert (tmp_path / "new" / names[0]).read_bytes() == jpeg
    assert names[1].startswith("images/A-dog-v2-")
    assert (names[2], names[5], names[6]) == ("p.jpg", "q.jpg", "r.jpg")
    assert [Path(names[place]).suffix for place in (0, 1, 3, 4, 7)] == [
        ".jpg", ".jpg", ".png", ".png", "",
    ]  # fmt: skip
    with Image.open(tmp_path / "new" / names[3]) as again:
        assert np.array_equal(np.asarray(again), np.asarray(picture))
    assert names[8].startswith("images/x-")
    assert sum(file.is_file() for file in tmp_path.rglob("*")) == 6


def test_images_need_a_folder_and_a_kind_that_is_known(tmp_path):
    with pytest.raises(SightlineError, match=r"documents_from\(rows, folder=\.\.\.\)"):
        list(documents_from([{**ROW, "images": [b"x"]}]))
    corpus = documents_from([{**ROW, "images": [3]}], folder=tmp_path)
    assert list(corpus) == []
    assert "expected a path, bytes or a picture, found a whole number" in str(corpus.problems.first)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SightlineError, match="cannot be the folder of images: File exists"):
        documents_from([], folder=tmp_path / "file")


def test_a_model_links_and_scores_rows(tmp_path):
    images = [{"bytes": photograph(n), "path": f"{n}.jpg"} for n in range(2)]
    rows = [{**ROW, "images": images, "split": "test"}]
    corpus = documents_from(rows, folder=tmp_path)
    model = tiny_model()
    (document,) = corpus
    assert len(model.link(document, "mmc4")) == 2
    assert evaluate(model, corpus)["documents"] == 1
    assert "data:image/" in document._repr_html_()


# ---- the ways to `datasets`: files and dictionaries


def test_our_parquet_has_the_same_types_whatever_is_in_it(tmp_path):
    """What `datasets.load_dataset("parquet", ...)` takes its features from."""
    for name, documents in (("some", DOCUMENTS), ("first", DOCUMENTS[:1])):
        write_parquet(documents, tmp_path / f"{name}.parquet")
    some, first = (
        pyarrow.parquet.read_schema(tmp_path / f"{n}.parquet") for n in ("some", "first")
    )
    assert [some.field(name) for name in first.names] == list(first)
    rows = pyarrow.parquet.read_table(tmp_path / "some.parquet").to_pylist()
    assert list(documents_from(rows)) == DOCUMENTS


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets


def test_documents_become_a_dataset_and_back(datasets):
    dataset = datasets.Dataset.from_list([document.to_dict() for document in DOCUMENTS])
    assert list(documents_from(dataset)) == [
        Document(d.id, d.sentences, d.images, d.links, d.split) for d in DOCUMENTS
    ]
    assert dataset["links"][2] == [[1, 0]]
    assert len(list(documents_from(dataset.with_format("numpy")))) == 3
    assert len(list(documents_from(dataset.to_iterable_dataset()))) == 3


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".jsonl.gz"])
def test_our_files_are_datasets(datasets, tmp_path, suffix):
    file = tmp_path / f"documents{suffix}"
    (write_parquet if suffix == ".parquet" else write_jsonl)(DOCUMENTS, file)
    kind = "parquet" if suffix == ".parquet" else "json"
    dataset = datasets.load_dataset(kind, data_files=str(file), split="train",
                                    cache_dir=str(tmp_path / "cache"))  # fmt: skip
    assert list(documents_from(dataset)) == DOCUMENTS


def test_images_of_a_dataset_are_written(datasets, tmp_path):
    rows = [{"id": "a", "sentences": ["A dog."], "images": [{"bytes": photograph(), "path": None}]}]
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "sentences": datasets.List(datasets.Value("string")),
            "images": datasets.List(datasets.Image()),
        }
    )
    dataset = datasets.Dataset.from_list(rows, features=features)
    (decoded,) = documents_from(dataset, folder=tmp_path / "decoded")
    assert decoded.images[0].endswith(".png")
    raw = dataset.cast_column("images", datasets.List(datasets.Image(decode=False)))
    (kept,) = documents_from(raw, folder=tmp_path / "kept")
    assert (tmp_path / "kept" / kept.images[0]).read_bytes() == photograph()
    assert sightline.DocumentLinks(kept).to_dict()["id"] == "a"
