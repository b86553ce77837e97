import subprocess
import sys
from pathlib import Path

import pytest
from test_readers import GOOD_LINE, KINDS, write_as, write_release

from sightline.corpus import SplitNotFound, read
from sightline.document_rows import documents_from
from sightline.documents import Document
from sightline.features import features_beside
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers.native import write_jsonl
from sightline.readers.tar_members import ARCHIVE_END, member_bytes

DOCUMENTS = [
    Document("a", ("s",), ("v",), None, "train"),
    Document("b", ("s",), ("v",), (), "val"),
    Document("c", ("s",), ("v",), ((0, 0),), "train"),
]
BAD_LINE = b'{"id": "bad"}\n'


@pytest.fixture
def three_problems(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(BAD_LINE + GOOD_LINE + BAD_LINE + GOOD_LINE + BAD_LINE)
    return path


# Finding


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found_as_a_file_and_as_a_folder(kind, tmp_path):
    write_as(kind, DOCUMENTS, tmp_path)
    (file,) = tmp_path.iterdir()
    for path in (file, tmp_path, str(file), str(tmp_path)):
        corpus = read(path)
        assert sorted(document.id for document in corpus) == ["a", "b", "c"]
        assert corpus.path == Path(path)
        assert corpus.file == file
        assert corpus.root == tmp_path


def test_jsonl_file_may_have_any_name(tmp_path):
    write_jsonl(DOCUMENTS, tmp_path / "my.corpus.jsonl.zst")
    assert list(read(tmp_path / "my.corpus.jsonl.zst")) == DOCUMENTS


def test_native_documents_come_before_the_release(tmp_path):
    write_release(tmp_path, {"train": []})
    write_jsonl(DOCUMENTS, tmp_path / "documents.jsonl.gz")
    assert list(read(tmp_path)) == DOCUMENTS


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent.jsonl", "no such file or folder"),
        ("notes.txt", "not a known kind of corpus"),
        ("other.json", "not a known kind of corpus"),
        ("folder", "no documents in this folder"),
    ],
)
def test_what_is_no_corpus_says_what_was_expected(name, reason, tmp_path):
    tmp_path.joinpath("folder").mkdir()
    for file in ("notes.txt", "other.json", "folder/notes.txt"):
        tmp_path.joinpath(file).touch()
    with pytest.raises(SightlineError) as caught:
        read(tmp_path / name)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / name}: {reason}; expected a .jsonl, ")
    assert "docs.json" in message


@pytest.mark.parametrize(
    ("file", "hint"), [("a.jsonl", "name one of them"), ("a.HTML", "sightline build pages")]
)
def test_a_folder_that_is_nearly_a_corpus_says_what_to_do(file, hint, tmp_path):
    tmp_path.joinpath(file).touch()
    with pytest.raises(SightlineError, match=hint):
        read(tmp_path)


def test_features_beside_a_corpus(tmp_path):
    write_jsonl(DOCUMENTS, tmp_path / "documents.jsonl")
    tmp_path.joinpath("id2row.json").touch()
    for path in (tmp_path, tmp_path / "documents.jsonl"):
        assert features_beside(read(path).root) is None
    tmp_path.joinpath("features.npy").touch()
    for path in (tmp_path, tmp_path / "documents.jsonl"):
        assert features_beside(read(path).root) == tmp_path
    tmp_path.joinpath("features").mkdir()
    for path in (tmp_path, tmp_path / "documents.jsonl"):
        assert features_beside(read(path).root) == tmp_path / "features"


# Passes and problems


def test_every_pass_gives_all_documents_and_counts_no_problem_again(three_problems):
    reported = []
    corpus = read(three_problems, problems=Problems(report=reported.append))
    for _ in range(3):
        assert len(list(corpus)) == 2
        assert corpus.problems.count == 3
    assert [problem.line for problem in reported] == [1, 3, 5]


def test_pass_that_stops_early_leaves_the_rest_to_the_next(three_problems):
    corpus = read(three_problems)
    counts = []
    first, second = iter(corpus), iter(corpus)
    for documents in (first, second, second, first):
        next(documents)
        counts.append(corpus.problems.count)
    assert counts == [1, 1, 2, 2]
    assert len(list(corpus)) == 2
    assert [problem.line for problem in corpus.problems.first] == [1, 3, 5]


def test_passes_over_different_splits_count_together(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(DOCUMENTS, path)
    path.write_bytes(path.read_bytes() + BAD_LINE)
    corpus = read(path)
    assert len(list(corpus.documents("train"))) == 2
    assert len(list(corpus.documents("val"))) == 1
    assert corpus.problems.count == 1


def test_strict_stops_every_pass_at_the_first_problem(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD_LINE + BAD_LINE + BAD_LINE)
    corpus = read(path, strict=True)
    for _ in range(2):
        documents = iter(corpus)
        assert next(documents).id == "d"
        with pytest.raises(ProblemError, match=r"a\.jsonl:2: sentences: expected"):
            next(documents)
    assert corpus.problems.count == 0


def test_given_problems_are_the_ones_that_count(three_problems):
    problems = Problems()
    problems.add("elsewhere", None, None, "something else")
    corpus = read(three_problems, problems=problems)
    assert corpus.problems is problems
    assert len(list(corpus)) == len(list(corpus)) == 2
    assert problems.count == 4
    with pytest.raises(ValueError, match="strict contradicts"):
        read(three_problems, strict=True, problems=problems)
    assert read(three_problems, strict=True, problems=Problems(strict=True)).problems.strict


def test_nothing_is_read_before_it_is_asked_for(three_problems):
    corpus = read(three_problems)
    documents = iter(corpus)
    assert corpus.problems.count == 0
    next(documents)
    assert corpus.problems.count == 1


def test_allow_empty(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "d", "sentences": [], "images": []}\n')
    assert list(read(path)) == []
    assert list(read(path, allow_empty=True)) == [Document("d", (), ())]


# Splits


@pytest.fixture
def with_splits(tmp_path):
    splits = ["train", "validation", "val", None, "dev", "test", "train"]
    documents = [Document(str(i), ("s",), ("v",), None, s) for i, s in enumerate(splits)]
    write_jsonl(documents, tmp_path / "documents.jsonl")
    return tmp_path


@pytest.mark.parametrize(
    ("split", "ids"),
    [
        (None, "0123456"),
        ("train", "06"),
        ("test", "5"),
        ("val", "124"),
        ("validation", "124"),
        ("dev", "124"),
    ],
)
def test_splits(split, ids, with_splits):
    corpus = read(with_splits, split=split)
    assert "".join(document.id for document in corpus) == ids
    assert "".join(document.id for document in corpus.documents(split)) == ids
    assert "".join(document.id for document in corpus.documents(None)) == "0123456"


def test_names_of_splits_stay_as_they_are_in_the_data(with_splits):
    corpus = read(with_splits)
    assert [document.split for document in corpus.documents("dev")] == ["validation", "val", "dev"]
    assert list(corpus.splits) == ["train", "validation", "val", None, "dev", "test"]


def test_split_that_is_not_there(with_splits, tmp_path):
    corpus = read(with_splits)
    for split in ("held-out", "Train", ""):
        assert list(corpus.documents(split)) == []
        with pytest.raises(SplitNotFound, match=f"'{split}', its splits are train"):
            list(read(with_splits, split=split))
    error = corpus.split_not_found("held-out")
    assert isinstance(error, SplitNotFound)
    assert isinstance(error, SightlineError)
    assert str(error) == (
        f"{with_splits}: no document has the split 'held-out', "
        "its splits are train, validation, val, dev, test; 'all' takes every document."
    )
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD_LINE)
    corpus = read(path)
    assert list(corpus.documents("test")) == []
    words = str(corpus.split_not_found("test"))
    assert words.endswith("its documents have no split; 'all' takes every document.")
    assert str(read(path).split_not_found("test")) == f"{path}: no document could be read."


def test_the_split_all_is_every_document(with_splits):
    ids = [document.id for document in read(with_splits)]
    corpus = read(with_splits, split="all")
    assert [document.id for document in corpus] == ids
    assert [document.id for _, document in corpus.located()] == ids
    assert [document.id for document in read(with_splits).documents("all")] == ids


# The real corpora


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "count"), [("coco", 27000), ("openstax", 1128), ("guides", 618)])
def test_real_corpora(name, count, shared_data):
    corpus = read(shared_data / name, strict=True)
    assert sum(1 for _ in corpus) == count
    assert features_beside(corpus.root) == shared_data / name / "features"
    assert "val" in corpus.splits


def test_reading_jsonl_needs_no_pyarrow(tmp_path):
    write_jsonl(DOCUMENTS, tmp_path / "a.jsonl")
    code = (
        "import sys; from sightline.corpus import read; "
        "assert len(list(read(sys.argv[1]))) == 3; "
        "assert not {'pyarrow', 'torch', 'scipy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.jsonl")], check=True)


# Places


@pytest.mark.parametrize("kind", KINDS)
def test_every_document_has_a_place(kind, tmp_path):
    write_as(kind, DOCUMENTS, tmp_path)
    located = list(read(tmp_path).located())
    assert [document for _, document in located] == list(read(tmp_path))
    places = [place for place, _ in located]
    (file,) = tmp_path.iterdir()
    assert len(set(places)) == 3 and all(place.startswith(f"{file}:") for place in places)
    assert [d.id for _, d in read(tmp_path, split="val").located()] == ["b"]


def test_a_place_is_the_line_in_the_file(three_problems):
    corpus = read(three_problems)
    assert [place for place, _ in corpus.located()] == [f"{three_problems}:{n}" for n in (2, 4)]
    assert corpus.problems.count == 0  # those are plain iteration's to report


def test_places_in_other_formats(tmp_path):
    (tmp_path / "a.jsonl").write_text('\n{"text_list": ["a"], "image_info": [{"image_name": "b"}]}')
    assert [place for place, _ in read(tmp_path / "a.jsonl").located()] == [f"{tmp_path}/a.jsonl:2"]
    (tmp_path / "b.jsonl").write_text('{"texts": ["a", null], "images": [null, "b"]}')
    assert [place for place, _ in read(tmp_path / "b.jsonl").located()] == [f"{tmp_path}/b.jsonl:1"]
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/0.tar").write_bytes(member_bytes("x/1.json", GOOD_LINE) + ARCHIVE_END)
    assert [p for p, _ in read(tmp_path / "shards").located()] == [f"{tmp_path}/shards/0.tar:x/1"]


def test_documents_are_counted_where_the_reader_tells_no_places(tmp_path):
    (tmp_path / "of another.tar").touch()
    rows = [DOCUMENTS[0].to_dict(), {}, DOCUMENTS[1].to_dict()]
    located = documents_from(rows, folder=tmp_path).located()
    assert list(located) == [
        ("rows, document 1", DOCUMENTS[0]), ("rows, document 2", DOCUMENTS[1])
    ]  # fmt: skip
