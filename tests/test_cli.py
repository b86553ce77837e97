"""The command line as a user meets it: real processes on real and on broken files."""

import os
import shutil
import signal
import subprocess
import sys
from itertools import islice

import numpy as np
import orjson
import pytest
from command_server import sightline

from sightline.corpus import read
from sightline.documents import document_to_record
from sightline.installed_packages import install_command
from sightline.model import LinkModel
from sightline.readers.native import write_jsonl

TRAIN = ["--dimension", "16", "--epochs", "2", "--negative-documents", "5", "--token-limit", "50"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, textbooks):
    """40 training, 12 validation and 8 test sections, with features of their own to break."""
    folder = tmp_path_factory.mktemp("corpus")
    chosen = [
        document
        for split, count in (("train", 40), ("val", 12), ("test", 8))
        for document in islice(read(textbooks).documents(split), count)
    ]
    write_jsonl(chosen, folder / "documents.jsonl")
    shutil.copytree(textbooks / "features", folder / "features")
    return folder


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory, textbooks):
    folder = tmp_path_factory.mktemp("model") / "m"
    vectors = ["--word-vectors", textbooks / "word_vectors.npz"]
    out, words = sightline("train", corpus, "-o", folder, *TRAIN, *vectors, "--json")
    assert orjson.loads(out)["epoch"] in (1, 2)
    assert "40 training and 12 validation documents" in words
    assert "have a vector" in words and "were cut to 50 tokens" in words
    assert "documents/s" in words and "left" in words
    return folder


@pytest.fixture
def broken(corpus, tmp_path):
    """A copy of the corpus and a function that appends records to it."""
    folder = tmp_path / "broken"
    shutil.copytree(corpus, folder)

    def add(*lines):
        with (folder / "documents.jsonl").open("ab") as file:
            for line in lines:
                file.write(line if isinstance(line, bytes) else orjson.dumps(line))
                file.write(b"\n")
        return folder

    return add


def good_record(corpus, **changes):
    document = next(iter(read(corpus).documents("test")))
    return {**document_to_record(document), **changes}


# ---- what works


def test_evaluate_prints_one_json_object(model, corpus, tmp_path):
    out, _ = sightline("evaluate", model, corpus, "--json", "--documents", tmp_path / "d.jsonl")
    scores = orjson.loads(out)
    assert list(scores) == ["documents", "skipped", "auc", "p@1", "p@5"]
    assert scores["documents"] == 8 and scores["skipped"] == 0
    lines = [orjson.loads(line) for line in (tmp_path / "d.jsonl").read_bytes().splitlines()]
    assert len(lines) == 8
    assert scores["auc"] == pytest.approx(np.mean([line["auc"] for line in lines]))


def test_evaluate_knows_swapped_arguments(model, corpus):
    for other in (model, "default"):
        _, words = sightline("evaluate", corpus, other, expect=2)
        assert f"the model comes first: 'sightline evaluate {other} {corpus}'." in words


def test_evaluate_for_people_and_other_cutoffs(model, corpus):
    out, _ = sightline("evaluate", model, corpus, "--split", "val", "--cutoff", 3)
    assert [line.split()[0] for line in out.splitlines()] == ["documents", "skipped", "auc", "p@3"]


def test_python_gives_what_the_command_prints(model, corpus):
    import sightline as package

    out, _ = sightline("evaluate", model, corpus, "--json")
    means = package.evaluate(package.LinkModel.from_pretrained(model), corpus)
    assert means == pytest.approx(orjson.loads(out))


def test_link_writes_one_record_per_document(model, corpus, tmp_path):
    out, _ = sightline("link", corpus, "--model", model, "--split", "test")
    records = [orjson.loads(line) for line in out.splitlines()]
    documents = list(read(corpus).documents("test"))
    assert [record["id"] for record in records] == [document.id for document in documents]
    for record, document in zip(records, documents, strict=True):
        assert list(record) == ["id", "links", "images", "sentences"]
        assert record["sentences"] == list(document.sentences)
        assert [image["id"] for image in record["images"]] == list(document.images)
        assert all(image["status"] == "ok" for image in record["images"])
        assert record["links"]
        for link in record["links"]:
            assert list(link) == ["sentence", "image", "score", "confidence"]
    sightline("link", corpus, "--model", model, "--split", "test", "-o", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == out


@pytest.mark.parametrize(
    "options", [["--policy", "dense"], ["--policy", "top-k", "--max-links", "2"],
                ["--policy", "mmc4"], ["--max-links", "half", "--matrix"]],
)  # fmt: skip
def test_link_policies(model, corpus, options):
    out, _ = sightline("link", corpus, "--model", model, "--split", "test", *options)
    records = [orjson.loads(line) for line in out.splitlines()]
    assert len(records) == 8
    for record in records:
        images = len(record["images"])
        pairs = {(link["sentence"], link["image"]) for link in record["links"]}
        assert len(pairs) == len(record["links"])
        if "dense" in options:
            assert {image for _, image in pairs} == set(range(images))
        if "top-k" in options:
            assert len(pairs) <= 4
        if "mmc4" in options:
            assert sorted(image for _, image in pairs) == list(range(images))
        if "--matrix" in options:
            assert len(pairs) <= (images + 1) // 2
            assert np.array(record["matrix"]).shape == (len(record["sentences"]), images)


# ---- what is broken: a clear message, no traceback, nothing lost


def test_bad_records_are_reported_counted_and_skipped(model, corpus, broken):
    folder = broken(
        good_record(corpus, id="no images", images=[]),
        good_record(corpus, id="empty sentence", sentences=["fine", " "], links=None),
        good_record(corpus, id="label", links=[[0, 99]]),
        b'{"id": "cut',
        b"null",
        good_record(corpus, id="fine"),
    )
    out, words = sightline("evaluate", model, folder, "--json")
    first = 61  # 60 good lines before
    for line, field in ((first, "images"), (first + 1, "sentences[1]"), (first + 2, "links[0]")):
        assert f"documents.jsonl:{line}: {field}" in words
    assert f"documents.jsonl:{first + 3}" in words and f"documents.jsonl:{first + 4}" in words
    assert "5 bad records were skipped" in words
    scores = orjson.loads(out)
    assert scores["documents"] == 9 and scores["skipped"] == 5
    _, words = sightline("evaluate", model, folder, "--strict", expect=1)
    assert words.startswith("Error: ") and "images" in words


def test_link_answers_for_documents_without_images_and_unreadable_ones(model, corpus, broken):
    record = good_record(corpus, id="gone", links=None)
    record["images"] = ["nowhere/gone.jpg", record["images"][0]]
    folder = broken(
        record, {"id": "bare", "sentences": ["Nothing to see.", ""], "images": [], "split": "test"}
    )
    out, _ = sightline("link", folder, "--model", model, "--split", "test")
    gone, bare = (orjson.loads(line) for line in out.splitlines()[-2:])
    assert gone["images"][0]["status"] == "missing" and "features" in gone["images"][0]["reason"]
    assert gone["images"][1]["status"] == "ok"
    assert {link["image"] for link in gone["links"]} == {1}  # places do not shift
    assert bare["links"] == [] and bare["images"] == []


def test_images_without_features_and_not_a_number(model, corpus, broken):
    record = good_record(corpus, id="gone", images=["x.jpg", "y.jpg"], links=[[0, 0]])
    folder = broken(record)
    matrix = np.load(folder / "features" / "efficientnet-lite0.npy")
    document = next(iter(read(folder).documents("test")))
    rows = orjson.loads((folder / "features" / "id2row.json").read_bytes())
    matrix[rows[document.images[1].removeprefix("images/").removesuffix(".jpg")], 5] = np.nan
    np.save(folder / "features" / "efficientnet-lite0.npy", matrix)
    out, words = sightline("evaluate", model, folder, "--json")
    assert "images[0]: 'x.jpg': no row in the features" in words
    assert f"{document.id}: images[1]: {document.images[1]!r}: a value that is not" in words
    assert orjson.loads(out)["documents"] == 7
    _, words = sightline("evaluate", model, folder, "--strict", expect=1)
    assert words.startswith("Error: ") and "images[1]" in words


def test_truncated_features(model, broken):
    folder = broken()
    file = folder / "features" / "efficientnet-lite0.npy"
    file.write_bytes(file.read_bytes()[:5000])
    _, words = sightline("evaluate", model, folder, expect=1)
    assert "efficientnet-lite0.npy" in words and "bytes" in words


def test_word_vectors_with_a_broken_line(corpus, tmp_path):
    file = tmp_path / "vectors.txt"
    numbers = " ".join(["0.1"] * 300)
    file.write_text(f"the {numbers}\nof {numbers} 7 8\na {numbers}\nand {numbers[:-4]} x\n")
    _, words = sightline(
        "train", corpus, "-o", tmp_path / "m", *TRAIN, "--word-vectors", file,
    )  # fmt: skip
    assert "vectors.txt:4" in words
    assert "2 of " in words  # the and a


def test_damaged_model_and_checkpoint(model, corpus, tmp_path):
    copy = tmp_path / "m"
    shutil.copytree(model, copy)
    for name in ("model.safetensors", "checkpoint.safetensors"):
        (copy / name).write_bytes((copy / name).read_bytes()[:999])
    _, words = sightline("evaluate", copy, corpus, expect=1)
    assert "model.safetensors is damaged or cut short" in words
    _, words = sightline("train", corpus, "-o", copy, *TRAIN, "--resume", expect=1)
    assert "checkpoint.safetensors is damaged or cut short" in words


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["evaluate", "nowhere", "CORPUS"], 1, "sightline train"),
        (["evaluate", "MODEL", "nowhere"], 1, "no such file or folder"),
        (["evaluate", "MODEL", "CORPUS", "--split", "tset"], 1, "train, val, test"),
        (["evaluate", "MODEL", "CORPUS", "--cutoff", "0"], 2, "at least 1"),
        (["evaluate", "MODEL", "CORPUS", "--features", "nowhere"], 1, "expected a feature store"),
        (["link", "CORPUS", "--model", "MODEL", "--max-links", "-3"], 2, "all, half or a number"),
        (["link", "CORPUS", "--model", "MODEL", "--policy", "magic"], 2, "magic"),
        (["train", "CORPUS", "-o", "OUT", "--similarity", "XY"], 2, "XY"),
        (["train", "CORPUS", "-o", "OUT", "--dropout", "1.5"], 2, "--dropout is 1.5"),
        (["train", "CORPUS", "-o", "OUT", "--layers", "3"], 2, "--layers is 3; expected 1 or 2"),
        (["train", "CORPUS", "-o", "OUT", "--negative-documents", "500"], 1, "at least 501"),
        (["train", "CORPUS", "-o", "OUT", "--word-vectors", "nowhere"], 1, "nowhere"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_wrong_usage_says_what_to_do(model, corpus, tmp_path, arguments, code, message):
    names = {"MODEL": model, "CORPUS": corpus, "OUT": tmp_path / "out"}
    _, words = sightline(*(names.get(word, word) for word in arguments), expect=code)
    assert message in words
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()


def test_a_corpus_without_known_links_cannot_be_scored(model, corpus, tmp_path):
    records = [good_record(corpus, id=str(n), links=None) for n in range(3)]
    file = tmp_path / "documents.jsonl"
    file.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    shutil.copytree(corpus / "features", tmp_path / "features")
    out, words = sightline("evaluate", model, file, "--json", expect=1)
    assert orjson.loads(out) == {
        "documents": 0, "skipped": 3, "auc": None, "p@1": None, "p@5": None,
    }  # fmt: skip
    assert "links are unknown" in words


def test_ctrl_c_says_that_what_was_finished_is_kept(corpus, tmp_path):
    command = [sys.executable, "-m", "sightline", "train", corpus, "-o", tmp_path / "m", *TRAIN]
    run = subprocess.Popen(
        [*command, "--epochs", "100000"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # A shell's background jobs are started with Ctrl-C ignored, and hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in run.stderr:
        if line.startswith("epoch 2"):
            run.send_signal(signal.SIGINT)
            break
    _, words = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "what was finished is kept" in words and "Traceback" not in words
    assert LinkModel.from_pretrained(tmp_path / "m").settings.dimension == 16


# ---- without the extras


@pytest.fixture
def without_torch(tmp_path):
    """An environment in which torch and numba cannot be imported, as in the small install."""
    folder = tmp_path / "hide"
    folder.mkdir()
    for name in ("torch", "numba", "pyarrow"):
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_evaluate_and_link_need_no_torch_and_train_names_the_extra(
    model, corpus, tmp_path, without_torch
):
    def run(*arguments):
        command = [sys.executable, "-m", "sightline", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=without_torch)

    plain, _ = sightline("evaluate", model, corpus, "--json")
    done = run("evaluate", model, corpus, "--json")
    assert (done.returncode, done.stdout) == (0, plain)
    linked = run("link", corpus, "--model", model, "--max-links", "half")
    assert linked.returncode == 0 and len(linked.stdout.splitlines()) == 60
    refused = run("train", corpus, "-o", tmp_path / "m")
    assert refused.returncode == 1
    assert install_command("train") in refused.stderr
    assert "Traceback" not in refused.stderr
