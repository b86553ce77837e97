"""Tables: intervals against a slow computation, bold against the paper's own, formats read back."""

import csv
import io
import re

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_paper_results import cells_of_the_paper, paper  # noqa: F401

from sightline.problems import SightlineError
from sightline.reproduction.paper_results import RESULTS
from sightline.reproduction.result_tables import METRICS, bold, bootstrap_interval, result_tables
from sightline.reproduction.results import read_results
from sightline.reproduction.rows import Row
from sightline.reproduction.table_files import tables_of
from sightline.reproduction.table_formats import csv_text, latex, markdown, records, terminal

# ---- bold


def test_bold_is_the_papers_rule(paper):  # noqa: F811
    """Within one point of the best, unrounded: four cells print exactly one point below it."""
    cells = {key: found for key, found in cells_of_the_paper(paper).items() if key[2] == 10}
    columns = {}
    for (dataset, row, _), found in cells.items():
        for metric, (value, is_bold) in enumerate(found):
            columns.setdefault((dataset, metric), []).append((row, value, is_bold))
    checked, on_the_edge = 0, []
    for (dataset, metric), column in columns.items():
        values = [value for _, value, _ in column]
        for (row, value, theirs), ours in zip(column, bold(values), strict=True):
            if round(max(values) - value, 1) == 1.0:
                on_the_edge.append((dataset, list(METRICS)[metric], row, theirs))
            else:
                assert ours == theirs, (dataset, row, metric)
            checked += 1
    assert checked == 8 * 3 * 6
    assert sorted(on_the_edge) == [
        ("dii-stress", "p@1", "DC", True),
        ("mscoco", "p@5", "DC", True),
        ("mscoco", "p@5", "TK", True),
        ("sis", "p@5", "AP half", False),
    ]


def test_one_hundredth_of_the_best_is_not_the_papers_rule(paper):  # noqa: F811
    value, is_bold = cells_of_the_paper(paper)["diy", "AP half", 10][1]
    best = RESULTS["diy", "AP", 10].precision_at_1
    assert is_bold and value < 0.99 * best


def test_bold_skips_what_is_absent():
    assert bold([None, 50.0, 49.0, 48.9]) == [False, True, True, False]
    assert bold([None]) == [False]


# ---- intervals


@given(
    st.lists(st.tuples(*[st.floats(0, 100)] * 3), min_size=1, max_size=8),
    st.integers(0, 3),
    st.sampled_from([0.5, 0.95]),
)
def test_intervals_equal_the_slow_computation(scores, seed, level):
    """Documents drawn anew, averaged, sorted; the ends of the interval lie between ranks."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(scores), size=(20, len(scores)))
    means = [
        [sum(scores[p][m] for p in places) / len(scores) for m in range(3)] for places in drawn
    ]
    low, high = bootstrap_interval(np.array(scores), seed, resamples=20, level=level)
    for metric in range(3):
        ordered = sorted(mean[metric] for mean in means)
        assert low[metric] == pytest.approx(between_ranks(ordered, (1 - level) / 2), abs=1e-9)
        assert high[metric] == pytest.approx(between_ranks(ordered, (1 + level) / 2), abs=1e-9)


def between_ranks(ordered, share):
    rank = share * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def test_intervals_cover_the_mean_as_often_as_they_say():
    """Of 200 samples of a known distribution about 95 % of the intervals hold its mean."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        low, high = bootstrap_interval(rng.normal(70, 10, (60, 1)), resamples=500)
        covered += bool(low[0] <= 70 <= high[0])
    assert 180 <= covered <= 198


def test_intervals_do_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch):
    scores = np.random.default_rng(0).random((30, 3))
    whole = bootstrap_interval(scores, resamples=300)
    monkeypatch.setattr("sightline.reproduction.result_tables._CHUNK", 7)
    np.testing.assert_array_equal(bootstrap_interval(scores, resamples=300), whole)


# ---- tables and their formats


def make_run(output, row, aucs, **record):
    folder = output / "runs" / row.folder_name
    folder.mkdir(parents=True)
    documents = [
        {"id": f"d{place}", "auc": auc, "p@1": auc / 2, "p@5": auc / 4}
        for place, auc in enumerate(aucs)
    ]
    (folder / "documents.jsonl").write_bytes(b"".join(orjson.dumps(d) + b"\n" for d in documents))
    means = {m: float(np.mean([d[m] for d in documents])) if documents else None for m in METRICS}
    test = {"documents": len(documents), "skipped": 1, **means}
    if row.trained:
        test["loss"] = 0.25
        settings = {"epochs": 5, "dimension": 8, "learning_rate": 0.0001}
        record = {"settings": settings, "best_epoch": 4, "validation": {"loss": 0.2},
                  "seconds": 61.0, **record}  # fmt: skip
    head = {"row": row.name, "negative_documents": row.negative_documents}
    (folder / "scores.json").write_bytes(orjson.dumps({**head, "test": test, **record}))


@pytest.fixture
def output(tmp_path):
    make_run(tmp_path, Row("AP", 10), [98.0, 99.0, 100.0])
    make_run(tmp_path, Row("DC", 10), [98.0, 98.5, 99.0])
    make_run(tmp_path, Row("AP mean", 10), [90.0, 91.0, 92.0])
    make_run(tmp_path, Row("AP", 20), [97.0, 98.0, 99.0])
    make_run(tmp_path, Row("Random", None), [49.0, 50.0, 51.0])
    return tmp_path


def test_a_table_per_b_with_ours_beside_theirs(output):
    tables = result_tables(read_results(output), "mscoco")
    names = [(table.negative_documents, [row.name for row in table.rows]) for table in tables]
    assert names == [(10, ["Random", "DC", "AP mean", "AP"]), (20, ["Random", "AP"])]
    cells = {row.name: row.cells["auc"] for row in tables[0].rows}
    assert cells["AP"].ours == pytest.approx(99.0)
    assert cells["AP"].low <= 99.0 <= cells["AP"].high
    assert cells["AP"].paper == 98.7 and cells["AP"].difference == pytest.approx(0.3)
    assert cells["AP mean"].paper is None and cells["AP mean"].difference is None
    assert [cell.bold for cell in cells.values()] == [False, True, False, True]
    assert cells["DC"].paper_bold and not cells["Random"].paper_bold
    assert tables[1].rows[1].cells["auc"].paper == RESULTS["mscoco", "AP", 20].auc


def test_markdown_holds_every_row(output):
    text = markdown(result_tables(read_results(output), "mscoco"), ["a note"])
    lines = text.splitlines()
    (line,) = [line for line in lines if line.startswith("| AP mean |") and "[" in line]
    assert re.match(r"\| AP mean \| 91\.0 \[90\.0, 92\.0\] \| - \| - \|", line)
    (line, _) = [line for line in lines if line.startswith("| AP |") and "[" in line]
    assert "| **99.0 [98.0, 100.0]** | **98.7** | +0.3 |" in line
    assert "| AP | 8 | 0.0001 | 4 of 5 | 0.2000 | 0.2500 | 1 min 1 s |" in lines
    assert lines[-1] == "- a note"
    columns = {line.count("|") for line in lines if line.startswith("|") and "[" in line}
    assert columns == {11}


def test_latex_is_complete_and_escaped(output):
    text = latex(result_tables(read_results(output), "mscoco"))
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 4
    assert r"\textbf{99.0 [98.0, 100.0]}" in text and r"[95 \%]" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "[" in line]
    assert {line.count("&") for line in body} == {9}


def test_csv_and_json_hold_the_same(output):
    tables = result_tables(read_results(output), "mscoco")
    found = list(csv.DictReader(io.StringIO(csv_text(tables))))
    expected = records(tables)
    assert len(found) == len(expected) == 6
    for read_back, record in zip(found, expected, strict=True):
        assert read_back == {
            name: "" if value is None else str(value) for name, value in record.items()
        }


def test_without_a_dataset_nothing_is_compared(output):
    tables = result_tables(read_results(output), None)
    assert "paper" not in markdown(tables)
    assert all(row.cells["auc"].paper is None for table in tables for row in table.rows)


def test_a_narrow_terminal_gets_no_intervals(output):
    tables = result_tables(read_results(output), "mscoco")
    wide, narrow = ([str(c.header) for c in terminal(tables, w)[0].columns] for w in (140, 80))
    assert "AUC [95 %]" in wide and "AUC" in narrow and len(wide) == len(narrow)


def test_rows_without_known_links_have_losses_only(tmp_path):
    make_run(tmp_path, Row("AP", 10), [])
    tables = result_tables(read_results(tmp_path), "diy")
    assert not tables[0].scored and tables[0].rows[0].loss("test") == 0.25
    text = markdown(tables)
    assert "AUC" not in text and "0.2500" in text
    assert records(tables)[0]["auc"] is None


def test_files_and_notes(output):
    honest = {"auc": 51.0, "p@1": 6.0, "p@5": 7.0}
    notes = {"k": 3, "k_by_validation": 2, "by_validation": honest}
    make_run(output, Row("Object detection", None), [60.0, 61.0], notes=notes, problems=2)
    tables = tables_of(output, "mscoco", ["first"], seed=1)
    tables.write(output)
    assert orjson.loads((output / "tables.json").read_bytes()) == tables.to_record()
    assert tables.notes[0] == "first" and "2 bad records" in tables.notes[1]
    assert "by the 3 most probable" in tables.notes[2] and "AUC 51.0" in tables.notes[2]
    for suffix in ("md", "tex", "csv"):
        assert "Object detection" in (output / f"tables.{suffix}").read_text()


def test_damaged_and_absent_scores_are_said(output, tmp_path):
    with pytest.raises(SightlineError, match=r"No row in .* is finished"):
        tables_of(tmp_path / "nothing", None, [], seed=1)
    (output / "runs" / "AP-b10" / "scores.json").write_text("{")
    with pytest.raises(SightlineError, match="is damaged"):
        read_results(output)
