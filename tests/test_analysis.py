"""The analysis equals a slow, direct computation, and says in words what it cannot compute."""

import math
import re
from pathlib import Path

import numpy as np
import orjson
import pytest
from command_server import sightline
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import fdtrc

from sightline.analysis import Analysis, analyse, correlate, principal_components, regress
from sightline.analysis_tables import analysis_tables
from sightline.corpus import read
from sightline.document_measures import measure_documents, spread
from sightline.documents import Document
from sightline.features import FeatureStore, write_feature_store
from sightline.problems import Problems, SightlineError
from sightline.report.run_folders import Run, main_run, read_runs
from sightline.sentences import tokenize
from sightline.settings import Settings
from sightline.word_vectors import WordVectors

# ---- the formulas as plain loops


def slow_unit(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def slow_mean(vectors):
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def slow_spread(vectors):
    units = [slow_unit(vector) for vector in vectors]
    centre = slow_mean(units)
    distances = [sum((x - c) ** 2 for x, c in zip(unit, centre, strict=True)) for unit in units]
    return sum(distances) / len(distances)


def slow_solve(matrix, right):
    """Gauss with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [rows[i][-1] / rows[i][i] for i in range(size)]


def slow_regression(y, regressors):
    """R2 and the p-value of the F-test, by the normal equations."""
    design = [[1.0, *row] for row in regressors]
    size = len(design[0])
    normal = [[sum(d[i] * d[j] for d in design) for j in range(size)] for i in range(size)]
    right = [sum(d[i] * value for d, value in zip(design, y, strict=True)) for i in range(size)]
    weights = slow_solve(normal, right)
    fitted = [sum(w * x for w, x in zip(weights, d, strict=True)) for d in design]
    mean = sum(y) / len(y)
    residual = sum((a - b) ** 2 for a, b in zip(y, fitted, strict=True))
    total = sum((a - mean) ** 2 for a in y)
    r2 = 1 - residual / total
    columns, rest = size - 1, len(y) - size
    f = (r2 / columns) / ((1 - r2) / rest)
    return r2, fdtrc(columns, rest, f)


def slow_ranks(values):
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def slow_spearman(one, other):
    a, b = slow_ranks(one), slow_ranks(other)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    top = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    return top / math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))


# ---- the measures and the statistics


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10_000))
def test_spread_is_the_mean_squared_distance_to_the_centroid(count, dimension, seed):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    assert spread(vectors) == pytest.approx(slow_spread(vectors.tolist()), abs=1e-12)


def test_spread_of_one_and_of_equal_directions_is_zero_and_of_opposite_ones_is_one():
    assert spread(np.array([[3.0, 4.0]])) == 0
    assert spread(np.array([[1.0, 0.0], [5.0, 0.0]])) == pytest.approx(0)
    assert spread(np.array([[1.0, 0.0], [-2.0, 0.0]])) == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(st.integers(8, 25), st.integers(1, 4), st.integers(0, 10_000))
def test_regression_equals_the_normal_equations(documents, columns, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(documents, columns))
    y = x @ rng.normal(size=columns) + rng.normal(size=documents)
    found = regress("x", y, x)
    r2, p = slow_regression(y.tolist(), x.tolist())
    assert found.r2 == pytest.approx(r2, abs=1e-9)
    assert found.p == pytest.approx(p, rel=1e-6, abs=1e-12)
    assert found.adjusted_r2 == pytest.approx(
        1 - (1 - r2) * (documents - 1) / (documents - 1 - columns)
    )


def test_constant_and_repeated_regressors_change_nothing():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    more = np.hstack([x, np.full((20, 1), 0.3), x[:, :1] * 7 + x[:, 1:]])
    assert regress("x", y, more).columns == 2
    assert regress("x", y, more).p == pytest.approx(regress("x", y, x).p)


@pytest.mark.parametrize(
    ("auc", "regressors", "reason"),
    [
        ([50.0] * 9, np.eye(9)[:, :2], "AUC is the same for every document"),
        (range(9), np.ones((9, 2)), "x is the same for every document"),
        (range(4), np.eye(4)[:, :3], "4 documents are too few for 3 regressors"),
        ([], np.empty((0, 2)), "x is the same for every document"),
    ],
)
def test_a_regression_that_cannot_be_says_why(auc, regressors, reason):
    found = regress("x", np.array(auc, float), regressors)
    assert (found.r2, found.p, found.reason) == (None, None, reason)


def test_a_perfect_fit_has_no_finite_f():
    x = np.arange(6.0)[:, None]
    found = regress("x", 3 * x[:, 0] + 1, x)
    assert found.r2 == pytest.approx(1)
    assert found.p == pytest.approx(0, abs=1e-12)
    assert orjson.dumps(Analysis({"m": [found]}).to_record())


def test_principal_components_are_those_of_scikit_learn():
    decomposition = pytest.importorskip("sklearn.decomposition")
    vectors = np.random.default_rng(2).normal(size=(40, 30))
    ours = principal_components(vectors, 5)
    theirs = decomposition.PCA(5, svd_solver="full").fit_transform(vectors)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)
    # No more than there are: three points lie in a plane.
    assert principal_components(vectors[:3]).shape == (3, 2)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20))
def test_spearman_equals_the_correlation_of_ranks(pairs):
    one, other = (np.array(series, float) for series in zip(*pairs, strict=True))
    found = correlate("one", "other", one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found.rho is None
        assert "is the same for every document" in found.reason
    else:
        assert found.rho == pytest.approx(slow_spearman(one.tolist(), other.tolist()))


# ---- documents


def a_document(id, sentences, images):
    return Document(id, tuple(sentences), tuple(images), links=((0, 0),))


@pytest.fixture
def small(tmp_path):
    """Six documents of three images, with features and word vectors of their own."""
    rng = np.random.default_rng(5)
    ids = [f"v{n}" for n in range(18)]
    features = rng.normal(size=(18, 4)).astype(np.float32)
    write_feature_store(tmp_path, "test", ids, features, {}, np.float32)
    words = ["a", "cat", "dog", "sits", "runs", "red"]
    vectors = rng.normal(size=(6, 3)).astype(np.float32)
    documents = [
        a_document(
            f"d{n}",
            [" ".join(rng.choice(words, 4)), "a red DOG runs", "unknown words only"],
            ids[3 * n : 3 * n + 3],
        )
        for n in range(6)
    ]
    return documents, FeatureStore.open(tmp_path), WordVectors(words, vectors), features


def test_measures_equal_plain_loops_and_leave_out_what_has_no_vector(small):
    documents, store, words, features = small
    measures = measure_documents(documents, store, words)
    assert (measures.ids, measures.left_out) == ([d.id for d in documents], 0)
    row = {word: vector.tolist() for word, vector in zip(words.words, words.vectors, strict=True)}
    for place, document in enumerate(documents):
        images = features[3 * place : 3 * place + 3].tolist()
        assert measures.image_spread_D[place] == pytest.approx(slow_spread(images), abs=1e-6)
        known = [[row[w] for w in tokenize(s) if w in row] for s in document.sentences]
        sentences = [slow_mean(of_sentence) for of_sentence in known if of_sentence]
        assert len(sentences) == 2
        assert measures.text_spread_D[place] == pytest.approx(slow_spread(sentences), abs=1e-6)
        content = slow_mean([slow_unit(vector) for vector in sentences])
        np.testing.assert_allclose(measures.text_content_DE[place], content, atol=1e-6)


def test_documents_without_any_vector_are_left_out_and_counted(small):
    documents, store, words, _ = small
    bad = [a_document("no words", ["xyz"], ["v0"]), a_document("no image", ["a"], ["nowhere"])]
    measures = measure_documents([*documents, *bad], store, words)
    assert (len(measures.ids), measures.left_out) == (6, 2)
    assert "no words" in measure_documents([*documents, *bad], store, None).ids
    runs = [Run("m", {d.id: 10.0 * n for n, d in enumerate(documents)})]
    assert "2 documents are left out" in " ".join(analyse(runs, measures).notes)


def test_without_word_vectors_only_images_explain(small):
    documents, store, _, _ = small
    measures = measure_documents(documents, store, None)
    analysis = analyse([Run("m", {d.id: 7.0 * n for n, d in enumerate(documents)})], measures)
    assert [r.regressors for r in analysis.regressions["m"]] == ["spread", "spread + content"]
    assert "Without --word-vectors" in analysis.notes[0]
    assert analysis_tables(analysis)[0].rows[0][0] == "m"


def test_hardest_and_easiest_are_by_the_mean_over_structured_models():
    auc = {f"d{n:02}": float(n) for n in range(30)}
    ap = Run("AP", auc, settings=Settings())
    tk = Run("TK", {**auc, "d00": 100.0, "other": 0.0}, settings=Settings(similarity="TK"))
    nostruct = Run("NoStruct", dict.fromkeys(auc, 1.0), settings=Settings(similarity="NoStruct"))
    analysis = analyse([ap, tk, nostruct, Run("Random", dict.fromkeys(auc, 50.0))], None)
    assert [document.id for document in analysis.hardest[:2]] == ["d01", "d02"]
    assert [(d.id, d.auc) for d in analysis.easiest[:2]] == [("d00", 50.0), ("d29", 29.0)]
    assert [(c.first, c.second) for c in analysis.between_models] == [("AP", "TK")]
    assert analysis.between_models[0].rho == pytest.approx(
        slow_spearman(list(ap.auc.values()), [tk.auc[id] for id in auc])
    )


def test_nothing_scored_is_said_in_words():
    assert "true links are not known" in analyse([Run("AP")], None).notes[0]
    assert analysis_tables(analyse([Run("AP")], None)) == []


def test_the_tables_put_the_papers_figures_beside_ours(small):
    documents, store, words, _ = small
    measures = measure_documents(documents, store, words)
    runs = [
        Run(name, {d.id: float((7 * n) % factor) for n, d in enumerate(documents)})
        for name, factor in (("DC", 11), ("AP", 13))
    ]
    tables = analysis_tables(analyse(runs, measures))
    text = "\n".join(table.to_text() for table in tables)
    for words_of_paper in ("paper, DII: AP", "paper, MSCOCO: DC and AP"):
        assert words_of_paper in text
    paper = {row[0]: row for row in tables[0].rows}["paper, SIS: AP"]
    assert {"23", "35"} <= set(paper)
    assert "AP: no regression on spread + content, because 6 documents are too few" in text
    assert max(map(len, tables[0].to_text().splitlines()[:8])) < 120


# ---- score files


def test_score_files_and_run_folders_are_read_and_bad_lines_counted(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id":"a","auc":50}\nnonsense\n{"id":"b"}\n{"id":3,"auc":1}\n[]\n\n')
    problems = Problems()
    (run,) = read_runs([file], problems)
    assert (run.name, run.auc, problems.count) == ("mine", {"a": 50.0}, 4)
    folder = tmp_path / "AP"
    folder.mkdir()
    (folder / "documents.jsonl").write_text('{"id":"a","auc":60}\n')
    (folder / "log.jsonl").write_text('{"start":{}}\n{"epoch":1,"validation_loss":0.4}\n{"epo')
    (folder / "scores.json").write_text('{"documents":1,"auc":60.0}')
    runs = read_runs([folder, file], Problems())
    assert [run.name for run in runs] == ["AP", "mine"]
    assert runs[0].epochs == [{"epoch": 1, "validation_loss": 0.4}]
    assert main_run(runs) is None
    with pytest.raises(SightlineError, match="both named 'AP'"):
        read_runs([folder, folder / "documents.jsonl"], Problems())
    with pytest.raises(SightlineError, match="no such file"):
        read_runs([tmp_path / "nowhere"], Problems())
    with pytest.raises(SightlineError, match="holds no scores"):
        read_runs([tmp_path], Problems())


def test_the_main_run_is_the_papers(tmp_path):
    def run(name, auc, **settings):
        return Run(name, {"d": auc}, settings=Settings(**settings))

    ap, ap20 = run("AP b10", 50.0), run("AP b20", 99.0, negative_documents=20)
    dc = run("DC", 80.0, similarity="DC")
    none = run("NoStruct", 90.0, similarity="NoStruct")
    assert main_run([none, dc, ap20, ap, Run("Random", {"d": 100.0})]).name == "AP b10"
    assert main_run([none, dc]).name == "DC"


# ---- the command


@pytest.fixture(scope="module")
def score_files(textbooks, tmp_path_factory):
    """Scores of two made-up models on real documents, one in agreement with image spread."""
    folder = tmp_path_factory.mktemp("scores")
    documents = list(read(textbooks).documents("test"))
    store = FeatureStore.open(textbooks / "features")
    rng = np.random.default_rng(3)
    for name, noise in (("DC", 30), ("AP", 3)):
        with (folder / f"{name}.jsonl").open("wb") as file:
            for document in documents:
                auc = 90 * spread(store.vectors(store.rows(document.images)))
                auc = float(np.clip(auc + noise * rng.random(), 0, 100))
                file.write(orjson.dumps({"id": document.id, "auc": auc}) + b"\n")
    return [folder / "DC.jsonl", folder / "AP.jsonl"]


def test_analyze_finds_what_was_put_in(score_files, textbooks):
    """By the command of docs/analysis.md."""
    page = (Path(__file__).parents[1] / "docs" / "analysis.md").read_text()
    (line,) = re.findall(r"^sightline (analyze .*)$", page, re.MULTILINE)
    names = {"CORPUS": [textbooks], "SCORES...": score_files,
             "glove.txt.gz": [textbooks / "word_vectors.npz"]}  # fmt: skip
    command = [word for part in line.split() for word in names.get(part, [part])]
    out, _ = sightline(*command, "--json")
    found = orjson.loads(out)
    by_title = {r["regressors"]: r for r in found["regressions"]["AP"]}
    assert by_title["image spread"]["r2"] > 0.9 > by_title["text spread"]["r2"]
    assert by_title["spread"]["p"] < 1e-6
    assert by_title["spread + content"]["columns"] == 42
    assert 0.3 < found["between_models"][0]["rho"] < 1
    assert len(found["hardest"]) == len(found["easiest"]) == 10
    text, _ = sightline(*command, "--split", "test")
    assert "paper, DIY: AP" in text and "Hardest documents" in text


def test_analyze_says_what_is_missing(score_files, textbooks, tmp_path):
    out, words = sightline("analyze", textbooks, score_files[0])
    assert "Without --word-vectors" in words and "Easiest documents" in out
    _, words = sightline("analyze", textbooks, *score_files, "--split", "train", expect=1)
    assert "None of the documents" in words
    constant = tmp_path / "constant.jsonl"
    lines = score_files[0].read_bytes().splitlines()
    records = [{**orjson.loads(line), "auc": 50.0} for line in lines]
    constant.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    out, _ = sightline("analyze", textbooks, constant)
    assert "because AUC is the same for every document" in out
