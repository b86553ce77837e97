"""`sightline demo` as a process, its page, and whose the bundled documents are."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import command_server
import orjson
import pytest

from sightline.baselines import random_baseline
from sightline.corpus import read
from sightline.demo import SPLIT, copy_documents
from sightline.demo_page import Result, demo_page, mean_scores
from sightline.problems import SightlineError

ROOT = Path(__file__).parents[1]
BUNDLED = Path(str(files("sightline") / "data" / "demo"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def sightline(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "sightline", *arguments],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    imports, words = [], []
    for line in done.stderr.splitlines():
        (imports if line.startswith("import time:") else words).append(line)
    assert done.returncode == 0, "\n".join(words)
    return done.stdout, "\n".join(words), {line.rpartition("|")[2].strip() for line in imports}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, *sightline(folder, "demo")


def scores(printed):
    rows = re.findall(r"^ +(default|random|chance) +([\d.]+) +([\d.]+) +([\d.]+)$", printed, re.M)
    return {name: [float(value) for value in values] for name, *values in rows}


def test_it_prints_scores_and_files_to_open(run):
    folder, printed, words, _ = run
    reached = scores(printed)
    assert reached["chance"][0] == 50
    assert reached["default"][0] > reached["random"][0] + 10
    paths = [folder / line for line in printed.splitlines() if line.startswith("sightline-demo/")]
    assert [path.name for path in paths] == [
        "index.html",
        "threats-to-biodiversity.links.html",
        "solenoid-valve-cable-fix.links.html",
        "alt.txt",
    ]
    assert all(path.stat().st_size > 1000 for path in paths)
    assert "Done in" in words


def test_it_needs_no_more_than_the_core_install(run):
    loaded = run[3]
    assert "sightline.demo" in loaded
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & {"torch", "numba", "matplotlib", "pyarrow", "transformers", "fastapi"}


def test_the_commands_that_it_names_give_the_same(run):
    folder, printed, words, _ = run
    commands = [shlex.split(line) for line in re.findall(r"^   \$ sightline (.*)$", words, re.M)]
    assert [words[0] for words in commands] == ["link", "evaluate", "evaluate", "link", "alt"]
    made = folder / "sightline-demo"
    before = {path: path.read_bytes() for path in made.iterdir() if path.is_file()}
    assert len(before) == 6  # the mark too

    def repeat(*command):
        # In a process of its own: other threads add numbers in another order.
        return command_server.sightline(*command, cwd=folder)[0]

    for command in commands:
        if command[0] == "evaluate":
            means = orjson.loads(repeat(*command, "--json"))
            again = [means["auc"], means["p@1"], means["p@5"]]
            assert scores(printed)[command[1]] == pytest.approx(again, abs=0.051)
        elif ">" in command:
            place = command.index(">")
            assert (folder / command[place + 1]).read_text() == repeat(*command[:place])
        else:
            repeat(*command)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("width", [1280, 400])
def test_the_pages_figures_stand_in_columns_and_its_bars_are_seen(run, browser, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto((run[0] / "sightline-demo" / "index.html").as_uri())
    bars = page.evaluate("""[...document.querySelectorAll("svg")].map((bar) => {
        const { width, height } = bar.getBoundingClientRect();
        const part = bar.querySelector(".part").getBoundingClientRect().width;
        return [width, height, part / width * 100 - parseFloat(bar.parentNode.textContent)];
    })""")
    assert len(bars) == 9
    for wide, high, off in bars:
        assert wide >= 60 and high >= 10 and abs(off) < 0.2
    cells = page.evaluate("[...document.querySelectorAll('tbody td')].map(e => "
                          "getComputedStyle(e).textAlign)")  # fmt: skip
    assert len(cells) == 9 + 27 and set(cells) == {"right"}
    assert page.evaluate("""[...document.querySelectorAll("table, main")].every((one) =>
        one.getBoundingClientRect().right <= document.body.clientWidth - 24)""")
    page.close()


def test_only_a_folder_of_its_own_is_written(tmp_path):
    folder = copy_documents(tmp_path / "new" / "demo")
    (folder.documents / "documents.jsonl").unlink()
    copy_documents(folder.root)
    assert len(list(read(folder.documents))) == 9
    other = tmp_path / "other"
    other.mkdir()
    copy_documents(other)
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "index.html").write_text("years of work")
    with pytest.raises(SightlineError, match="no demo wrote"):
        copy_documents(thesis)
    assert [path.name for path in thesis.iterdir()] == ["index.html"]
    for name in ("index.html", "new.html"):
        with pytest.raises(SightlineError, match="is the name of a file"):
            copy_documents(thesis / name)
    assert [path.name for path in thesis.iterdir()] == ["index.html"]


@pytest.fixture(scope="module")
def documents():
    return list(read(BUNDLED))


def test_the_page_says_which_links_are_true_and_trusts_no_name(documents):
    random = random_baseline(read(BUNDLED), SPLIT).scores
    true = {"sentence": documents[0].links[0][0], "image": documents[0].links[0][1]}
    false = {"sentence": 0, "image": 5}
    found = [{**link, "score": 0.5, "confidence": 0.25} for link in (true, false)]
    result = Result(documents[0], found, random[0], random[0])
    page = demo_page([result], ["a.html"], "alt.txt", "<script>alert(1)</script>")
    assert "<script" not in page
    assert page.count("✓") == 1 and page.count("✗") == 1
    assert page.count("25 % sure") == 2
    assert "1 of 2 links are true" in page
    assert page.count("<em>not linked</em>") == len(documents[0].images) - 2
    assert 'href="a.html"' in page and "default-src 'none'" in page.replace("&#x27;", "'")
    model, guessed, chance = mean_scores([result], "m")
    assert (model.auc, model.name, chance.auc) == (guessed.auc, "m", 50)
    assert chance.first == pytest.approx(100 * 17 / (163 * 6))


def test_every_bundled_image_is_attributed(documents):
    readme, notice = (BUNDLED / "README.md").read_text(), (ROOT / "NOTICE").read_text()
    sections = dict(zip(*[iter(re.split(r"^## (.*)\n", readme, flags=re.M)[1:])] * 2, strict=True))
    seen = []
    for document in documents:
        extra = document.extra
        section = sections[extra["title"]]
        licence = extra["license"].partition(" (")[0]
        assert licence in ("CC BY 4.0", "MIT")
        for said in (extra["author"], licence, extra["source"], extra["commit"]):
            assert said in section
        assert len(extra["credits"]) == len(extra["alts"]) == len(document.images)
        for image, credit in zip(document.images, extra["credits"], strict=True):
            assert f"`{image}`: {credit or 'no credit of its own in the source'}\n" in section
        assert extra["source"].rpartition("/")[2] in notice
        seen += document.images
    assert sorted(seen) == sorted(f"images/{path.name}" for path in BUNDLED.glob("images/*"))
    assert "Permission is hereby granted" in readme and "Copyright (c) 2020 FarmBot Docs" in readme


def test_the_articles_are_documents_of_the_corpus(documents):
    from sightline.articles import read_article

    by_title = {document.extra["title"]: document for document in documents}
    for name, title in (
        ("threats-to-biodiversity.html", "Threats to Biodiversity"),
        ("solenoid-valve-cable-fix.md", "Solenoid Valve Cable Fix"),
    ):
        text = (BUNDLED / name).read_text()
        assert by_title[title].extra["commit"] in text and by_title[title].extra["author"] in text
        article = read_article(BUNDLED / name)
        assert article.page.title == title
        assert [image.name for image in article.images] == list(by_title[title].images)
        assert not article.page.left_out.images


def test_the_documents_are_small_and_no_others():
    found = {path.name for path in BUNDLED.iterdir()}
    assert found == {
        "README.md", "documents.jsonl", "images",
        "threats-to-biodiversity.html", "solenoid-valve-cable-fix.md",
    }  # fmt: skip
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) < 2.5e6


@pytest.mark.shared_data
def test_the_script_makes_the_same_files_again(shared_data, tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_demo", ROOT / "scripts" / "make_demo.py")
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_demo", script)  # where its dataclass looks for itself
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "FOLDER", tmp_path / "demo")
    script.main(shared_data)

    def content(folder):
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}

    assert content(tmp_path / "demo") == content(BUNDLED)
