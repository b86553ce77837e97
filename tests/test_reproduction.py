"""The grid on bundled textbook sections: real processes, killed, stopped and run again."""

import fcntl
import io
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import orjson
import pytest
from command_server import sightline
from training_helpers import first_sections

from sightline.corpus import read
from sightline.problems import SightlineError
from sightline.readers.native import write_jsonl
from sightline.reproduction.documents import choose_documents
from sightline.reproduction.overview import Overview, RowState, seconds_left
from sightline.reproduction.paper_results import RESULTS
from sightline.reproduction.results import read_results
from sightline.reproduction.rows import MAIN, SUPPLEMENT, Row, rows_from
from sightline.reproduction.setup import RunRequest, Setup
from sightline.settings import Settings

SMALL = ["--dimension", "8", "--epochs", "6", "--documents", "30", "--token-limit", "30",
         "--threads", "1"]  # fmt: skip
ROWS = "Random, Object detection, AP, NoStruct mean"


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory, textbooks):
    """120 training, 30 validation and 20 test sections; their features and vectors are linked."""
    folder = tmp_path_factory.mktemp("corpus")
    first_sections(folder, textbooks, train=120, val=30, test=20)
    (folder / "vectors.npz").symlink_to(textbooks / "word_vectors.npz")
    return folder


def command(corpus_folder, output, *more, rows=ROWS):
    vectors = ["--word-vectors", corpus_folder / "vectors.npz"]
    return ["reproduce", corpus_folder, "-o", output, *SMALL, "--rows", rows, *vectors, *more]


@pytest.fixture(scope="module")
def whole(corpus_folder, tmp_path_factory):
    """A reproduction that ran to its end."""
    output = tmp_path_factory.mktemp("whole")
    words = sightline(*command(corpus_folder, output, "--jobs", 2, "--dataset", "diy"))
    return output, *words


# ---- rows


def test_main_rows_are_those_of_the_papers_main_tables():
    rows = rows_from("main")
    assert {row.negative_documents for row in rows} == {None, 10}
    assert {row.name for row in rows} == {name for _, name, b in RESULTS if b == 10} == set(MAIN)


def test_all_rows_are_those_of_the_papers_supplement_at_every_b():
    rows = rows_from("all")
    assert set(SUPPLEMENT) == {name for _, name, b in RESULTS if b > 10}
    assert len(rows) == len(set(rows)) == 2 + 3 * 10
    assert [row.name for row in rows[:3]] == ["Random", "Object detection", "NoStruct mean"]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("AP", Row("AP", 10)),
        ("ap-half-b20", Row("AP half", 20)),
        (" TK half mean  b=5 ", Row("TK half mean", 5)),
        ("object detection", Row("Object detection", None)),
    ],
)
def test_rows_by_name(text, row):
    assert rows_from(text) == [row]
    assert rows_from(row.folder_name) == [row]
    assert len(rows_from(f"{text}, main, {text}")) == (8 if row in rows_from("main") else 9)


@pytest.mark.parametrize("text", ["", "AP,", "APP", "Random b10", "AP b0", "NoStruct"])
def test_a_row_that_does_not_exist_is_refused(text):
    with pytest.raises(SightlineError, match="There is no row"):
        rows_from(text)


def test_a_rows_settings():
    settings = Row("TK half", 20).settings(Settings(dimension=64, similarity="DC"))
    assert (settings.similarity, settings.max_links, settings.negatives) == ("TK", "half", "hard")
    assert (settings.negative_documents, settings.dimension) == (20, 64)
    mean = Row("NoStruct mean", 10).settings(settings)
    assert (mean.similarity, mean.max_links, mean.negatives) == ("NoStruct", "all", "mean")


# ---- documents


def resplit(corpus_folder, target, splits, **changes):
    """A copy of the corpus in which splits are renamed; None takes a document's split away."""
    documents = list(read(corpus_folder).documents(None))
    renamed = [replace(d, split=splits.get(d.split, d.split), **changes) for d in documents]
    write_jsonl(renamed, target / "documents.jsonl")
    (target / "features").symlink_to(corpus_folder / "features")
    return target


def ids(chosen, split):
    return {document.id for document in chosen.corpus.documents(split)}


def test_a_corpus_with_all_splits_keeps_them(corpus_folder):
    chosen = choose_documents(read(corpus_folder), None, seed=1)
    assert chosen.counts == {"train": 120, "val": 30, "test": 20}
    assert chosen.scorable == 20 and chosen.notes == []
    assert ids(chosen, "val") == {d.id for d in read(corpus_folder).documents("val")}


def test_fewer_training_documents_are_drawn_by_the_seed(corpus_folder):
    chosen = [choose_documents(read(corpus_folder), 30, seed) for seed in (1, 1, 2)]
    training = [ids(one, "train") for one in chosen]
    assert [len(found) for found in training] == [30, 30, 30]
    assert training[0] == training[1] != training[2]
    assert chosen[0].fingerprint == chosen[1].fingerprint != chosen[2].fingerprint
    assert ids(chosen[0], "test") == ids(chosen[2], "test")
    assert training[0] <= {d.id for d in read(corpus_folder).documents("train")}


def test_without_a_test_split_val_is_tested_and_validation_is_held_out(corpus_folder, tmp_path):
    folder = resplit(corpus_folder, tmp_path, {"test": "other"})
    chosen = choose_documents(read(folder), 50, seed=1)
    assert chosen.counts == {"train": 50, "val": 12, "test": 30}
    assert ids(chosen, "test") == {d.id for d in read(corpus_folder).documents("val")}
    validation = ids(chosen, "val")
    assert validation <= {d.id for d in read(corpus_folder).documents("train")}
    assert not validation & ids(chosen, "train")
    # With all documents validation stays the same.
    assert ids(choose_documents(read(folder), None, seed=1), "val") == validation
    assert "val documents are the test" in chosen.notes[0]


def test_without_any_split_both_are_held_out(corpus_folder, tmp_path):
    folder = resplit(corpus_folder, tmp_path, {"train": None, "val": None, "test": None})
    chosen = choose_documents(read(folder), None, seed=1)
    assert chosen.counts == {"train": 138, "val": 15, "test": 17}
    found = Counter(document.id for document in chosen.corpus.documents(None))
    assert len(found) == 170 and set(found.values()) == {1}


# ---- the grid


def test_a_request_survives_json(tmp_path):
    setup = Setup(corpus=tmp_path, output=tmp_path / "o", settings=Settings(dimension=8),
                  documents=3, word_vectors=tmp_path / "w")  # fmt: skip
    request = RunRequest(setup, Row("AP", 20))
    assert RunRequest.from_json(orjson.loads(orjson.dumps(request.to_json()))) == request


def test_the_whole_grid(whole):
    output, out, words = whole
    assert "4 of 4 rows finished, 0 s left" in words
    assert "AP b10: epoch" in words and "NoStruct mean b10: done, test loss" in words
    results = read_results(output)
    names = [str(result.row) for result in results]
    assert names == ["Random", "Object detection", "NoStruct mean b10", "AP b10"]
    for result in results:
        documents = result.documents()
        assert len(documents) == result.test["documents"] == 20
        assert sum(d["auc"] for d in documents) / 20 == pytest.approx(result.test["auc"])
        assert len(result.epochs()) == (6 if result.row.trained else 0)
    epochs = results[-1].epochs()
    assert results[-1].record["validation"]["auc"] in [epoch["validation_auc"] for epoch in epochs]
    assert results[-1].test["loss"] > 0
    assert (output / "tables.md").read_text() == out
    assert "| AP |" in out and "| **61.8** |" in out
    assert "30 of 120 training documents" in out
    assert {file.suffix for file in output.glob("tables.*")} == {".md", ".tex", ".csv", ".json"}
    assert orjson.loads((output / "reproduction.json").read_bytes())["command"].startswith(
        "sightline reproduce"
    )


def test_scores_are_those_of_evaluate(whole, corpus_folder):
    model = whole[0] / "runs" / "AP-b10"
    out, _ = sightline("evaluate", model, corpus_folder, "--json")
    test = read_results(whole[0])[-1].test
    assert {name: test[name] for name in orjson.loads(out)} == orjson.loads(out)


def test_finished_rows_are_not_made_again(whole, corpus_folder):
    output, out, _ = whole
    files = [f for f in output.glob("runs/*/*") if f.name != ".lock"]
    before = {file: file.stat().st_mtime_ns for file in files}
    again, words = sightline(*command(corpus_folder, output, "--dataset", "diy"))
    assert again == out and "running" not in words
    assert {file: file.stat().st_mtime_ns for file in files} == before and len(files) > 20


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--epochs", "7"], "epochs was 6 and is now 7"),
        (["--documents", "40"], "the documents were"),
        (["--seed", "2"], "seed was 1 and is now 2"),
        (["--threads", "2"], "the threads were 1 and are now 2"),
    ],
)
def test_another_reproduction_is_refused(whole, corpus_folder, options, sentence):
    _, words = sightline(*command(corpus_folder, whole[0], *options), expect=1)
    assert "holds a reproduction made otherwise" in words and sentence in words


def test_rows_with_other_settings_can_be_added_and_are_told_apart(whole, corpus_folder, tmp_path):
    output = tmp_path / "out"
    shutil.copytree(whole[0], output)
    other = ["--dimension", "4", "--epochs", "1", "--mixed"]
    out, _ = sightline(*command(corpus_folder, output, *other, rows="AP half"))
    assert re.search(r"\| AP \| 8 \| 0\.0001 \| \d of 6 \|", out)
    assert "| AP half | 4 | 0.0001 | 1 of 1 |" in out
    record = orjson.loads((output / "reproduction.json").read_bytes())
    assert record["settings"]["dimension"] == 8 and "--mixed" in record["further_commands"][0]
    page = (output / "report.html").read_text()
    assert "The commands:" in page
    shared = page[page.index("Settings that all rows share") :]
    assert '<th scope="row">seed' in shared and '<th scope="row">dimension' not in shared
    # What decides which documents are used may never differ.
    _, words = sightline(*command(corpus_folder, output, "--seed", 2, "--mixed"), expect=1)
    assert "seed was 1 and is now 2" in words


def test_a_finished_row_made_otherwise_is_refused(whole, corpus_folder, tmp_path):
    output = tmp_path / "out"
    shutil.copytree(whole[0], output)
    file = output / "runs" / "AP-b10" / "scores.json"
    record = orjson.loads(file.read_bytes())
    record["settings"]["margin"] = 0.5
    file.write_bytes(orjson.dumps(record))
    _, words = sightline(*command(corpus_folder, output), expect=1)
    assert "AP-b10 holds a run with other settings or documents" in words


def start(corpus_folder, output, rows):
    arguments = [str(word) for word in command(corpus_folder, output, rows=rows)]
    return subprocess.Popen(
        [sys.executable, "-m", "sightline", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_training(folder):
    """Whether the run has done an epoch and is not at its end."""
    log = folder / "log.jsonl"
    return log.exists() and b'"epoch"' in log.read_bytes()


def is_free(folder):
    """Whether no process works in a run's folder."""
    with (folder / ".lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def without_time(row):
    """A row of `tables.json` but for what depends on the clock and on the other rows."""
    return {name: value for name, value in row.items() if name != "seconds" and "bold" not in name}


def test_killed_reproduction_leaves_no_run_behind_and_goes_on_to_the_same(
    whole, corpus_folder, tmp_path
):
    rows, run = "NoStruct mean, AP", tmp_path / "runs" / "NoStruct-mean-b10"
    killed = start(corpus_folder, tmp_path, rows)
    wait_for(lambda: is_training(run))
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    wait_for(lambda: is_free(run))
    assert not (run / "scores.json").exists() and not (tmp_path / "tables.md").exists()
    left = run / ".sightline-left.tmp"
    left.write_text("half a file")
    # One after the other, where the whole grid was made two rows at a time.
    sightline(*command(corpus_folder, tmp_path, "--dataset", "diy", rows=rows))
    assert not left.exists()
    for name in ("AP-b10", "NoStruct-mean-b10"):
        for file in ("model.safetensors", "checkpoint.safetensors", "documents.jsonl"):
            one, other = (folder / "runs" / name / file for folder in (tmp_path, whole[0]))
            assert one.read_bytes() == other.read_bytes(), (name, file)
    found, expected = (
        [without_time(row) for row in orjson.loads((folder / "tables.json").read_bytes())["rows"]]
        for folder in (tmp_path, whole[0])
    )
    assert found == [row for row in expected if row["best_epoch"] is not None] and len(found) == 2


def test_ctrl_c_stops_the_runs_and_keeps_what_is_done(corpus_folder, tmp_path):
    run = tmp_path / "runs" / "NoStruct-mean-b10"
    # Whatever shell started the tests, Ctrl-C gets through.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        stopped = start(corpus_folder, tmp_path, "NoStruct mean")
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for(lambda: is_training(run))
    stopped.send_signal(signal.SIGINT)
    _, words = stopped.communicate(timeout=30)
    assert stopped.returncode == 130 and b"what was finished is kept" in words
    assert b"Traceback" not in words and is_free(run)
    assert not (run / "scores.json").exists()


def test_without_known_links_there_are_losses_and_the_reason(corpus_folder, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    resplit(corpus_folder, folder, {}, links=None)
    options = ["--rows", "Random, AP", "--epochs", "1", "--dimension", "8", "--documents", "20"]
    out, words = sightline("reproduce", folder, "-o", tmp_path / "out", *options, "--json")
    record = orjson.loads(out)
    (row,) = record["rows"]
    assert row["auc"] is None and row["test_loss"] > 0 and row["validation_loss"] > 0
    assert any("AUC and precision are absent" in note for note in record["notes"])
    assert "Random: absent: no test document has known links" in words


def test_a_row_that_fails_does_not_stop_the_others(corpus_folder, tmp_path):
    options = ["--rows", "AP b29, AP b30, Object detection", "--dimension", "8"]
    _, words = sightline("reproduce", corpus_folder, "-o", tmp_path, *options, "--epochs", 1,
                         "--documents", 40, expect=1)  # fmt: skip
    assert "AP b30: failed:" in words and "30 usable validation documents" in words
    assert "Rows that failed: AP b30" in words
    assert "Object detection: absent: it compares word vectors" in words
    assert [str(result.row) for result in read_results(tmp_path)] == ["AP b29"]


# ---- the overview


def state(name, done, wanted, seconds, status="running"):
    epochs = [
        {"epoch": n + 1, "seconds": seconds, "validation_loss": 0.5, "validation_auc": 70.0}
        for n in range(done)
    ]
    return RowState(Row(name, 10), wanted, status, epochs=epochs)


def test_time_left_follows_from_the_epochs_done():
    ap = state("AP", 2, 10, 60.0)
    waiting = state("DC", 0, 10, 0.0, "waiting")
    nostruct = state("NoStruct mean", 0, 10, 0.0, "waiting")
    assert seconds_left([ap], 1) == 480
    assert seconds_left([ap, waiting], 1) == 480 + 600
    assert seconds_left([ap, waiting], 2) == 600  # the longer of the two
    assert seconds_left([ap, nostruct], 1) is None  # another kind, of which nothing is known
    assert seconds_left([ap, state("NoStruct hard", 10, 10, 5.0, "done"), nostruct], 1) == 480 + 50
    assert seconds_left([state("AP", 10, 10, 60.0, "done")], 1) == 0


def test_plain_lines_come_when_something_changes():
    stream = io.StringIO()
    row = state("AP", 1, 4, 30.0)
    with Overview([row], 1, stream) as overview:
        overview.show()
        overview.show()
        row.epochs = row.epochs * 2
        row.epochs[-1] = {**row.epochs[-1], "epoch": 2}
        overview.show()
    assert stream.getvalue().splitlines() == [
        "AP b10: epoch 1 of 4, validation loss 0.5000, validation AUC 70.0; "
        "0 of 1 rows finished, 1 min 30 s left",
        "AP b10: epoch 2 of 4, validation loss 0.5000, validation AUC 70.0; "
        "0 of 1 rows finished, 1 min 0 s left",
    ]


def test_a_terminal_gets_a_table(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    failed = RowState(Row("Random", None), 0, "absent", "[no] links")
    with Overview([state("AP", 1, 4, 30.0), failed], 2, stream) as overview:
        overview.show()
    shown = stream.getvalue()
    assert "epoch 1 of 4" in shown and "absent: [no] links" in shown
    assert "1 of 2 rows finished, 1 min 30 s left" in shown
