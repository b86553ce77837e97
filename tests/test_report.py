"""The report page: all of it there, nothing of a document run as code, no request, usable."""

import base64
import re
import shutil
from importlib.util import find_spec

import numpy as np
import orjson
import pytest
from page_tags import Tags, check_markup_is_ours, check_policy
from PIL import Image

if find_spec("matplotlib") is None or find_spec("statsmodels") is None:
    pytest.skip("the extra reproduce is not installed", allow_module_level=True)

from sightline.corpus import read
from sightline.documents import Document
from sightline.evaluation import score_corpus
from sightline.features import FeatureStore, write_feature_store
from sightline.model import LinkModel
from sightline.model_files import expected_shapes
from sightline.readers.native import write_jsonl
from sightline.report.page import Page, render
from sightline.report.report import write_report
from sightline.report.shown_documents import (
    IMAGES_SHOWN,
    SENTENCES_SHOWN,
    choose_for_page,
    page_record,
)
from sightline.reproduction.table_files import tables_of
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)> "\'&amp; '
COMMAND = 'sightline reproduce "<corpus>" -o out'
WORDS = ["cat", "dog", "red", "runs", "sits"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Thirteen documents of hostile text, some pictures, features and word vectors."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    (folder / "images").mkdir()
    documents, names = [], []
    for number in range(13):
        images = [f"images/v{number}-{place}.jpg" for place in range(2 + number % 4)]
        names += images
        sentences = [f"{HOSTILE} {' '.join(rng.choice(WORDS, 3))} {n}" for n in range(5)]
        links = tuple((place, place) for place in range(2))
        documents.append(
            Document(
                f"{HOSTILE}{number}", tuple(sentences), tuple(images), links, "test",
                {"license": f"{HOSTILE}CC BY 4.0", "source": "https://example.org"},
            )
        )  # fmt: skip
    for name in names[:20]:
        Image.new("RGB", (90, 60), tuple(rng.integers(0, 255, 3).tolist())).save(folder / name)
    write_jsonl(documents, folder / "documents.jsonl")
    ids = [FeatureStore.image_id(name) for name in names]
    features = rng.normal(size=(len(ids), 6)).astype(np.float32)
    write_feature_store(folder / "features", "test", ids, features, {}, np.float32)
    vectors = rng.normal(size=(len(WORDS), 4)).astype(np.float32)
    np.savez(folder / "words.npz", words=np.array(WORDS), vectors=vectors)
    return folder


def write_run(folder, corpus, scored=True):
    """A reproduction folder with the run of a model of random weights."""
    settings = Settings(dimension=8, word_dimension=4, minimum_count=1, epochs=3)
    vocabulary = Vocabulary.from_sentences([s for d in read(corpus) for s in d.sentences], 1)
    rng = np.random.default_rng(1)
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in expected_shapes(settings, len(vocabulary), 6).items()
    }
    model = LinkModel(settings, vocabulary, weights, "test", {"versions": {"torch": "<b>9"}})
    store = FeatureStore.open(corpus / "features")
    scores, _ = score_corpus(model, read(corpus), "test", store)
    epochs = [
        {"epoch": n, "validation_loss": 0.5 - n / 10, "best": True, "seconds": 1.0,
         "validation_auc": 60.0 + n if scored else None}
        for n in (1, 2, 3)
    ]  # fmt: skip
    means = {"documents": len(scores), "skipped": 0, "auc": 50.0, "p@1": 20.0, "p@5": 30.0}
    if not scored:
        scores, means = [], dict.fromkeys(means) | {"documents": 0, "skipped": 13}
    for name, trained in (("AP-b10", True), ("Random", False)):
        run = folder / "runs" / name
        run.mkdir(parents=True)
        if trained:
            model.save_pretrained(run)
            lines = [orjson.dumps(record) for record in epochs]
            (run / "log.jsonl").write_bytes(b"\n".join(lines))
        (run / "documents.jsonl").write_bytes(
            b"".join(orjson.dumps(score.to_record()) + b"\n" for score in scores)
        )
        record = {
            "row": name.partition("-")[0], "negative_documents": 10 if trained else None,
            "settings": settings.to_json() if trained else None, "test": means,
            "validation": {"loss": 0.2}, "best_epoch": 3, "seconds": 3.0, "notes": {},
        }  # fmt: skip
        (run / "scores.json").write_bytes(orjson.dumps(record))
    tables_of(folder, "mscoco", [HOSTILE], 1).write(folder)
    setup = {"command": COMMAND, "settings": {"seed": 1, "epochs": 3}, "corpus": HOSTILE}
    (folder / "reproduction.json").write_bytes(orjson.dumps(setup))


@pytest.fixture(scope="module")
def reproduction(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction")
    write_run(folder, corpus)
    file = write_report(folder, read(corpus), None, corpus / "words.npz")
    assert file == folder / "report.html"
    return folder


def of(folder):
    return Tags((folder / "report.html").read_text())


def data_of(page):
    (block,) = [text for tag, kind, text in page.code if kind == "application/json"]
    return orjson.loads(block)


def test_hostile_text_stays_text(reproduction):
    page = of(reproduction)
    check_markup_is_ours(page)
    # What was escaped reads as it was written.
    assert COMMAND in page.text
    assert HOSTILE in "".join(page.text)
    assert all(one["id"].startswith(HOSTILE) for one in data_of(page)["documents"])


def test_the_policy_allows_nothing_but_the_pages_own_code(reproduction):
    check_policy(of(reproduction))
    text = (reproduction / "report.html").read_text()
    assert not re.search(r'(src|href|action)="(?!data:|#)', text)


def test_everything_is_there(reproduction):
    page = of(reproduction)
    text = "".join(page.text)
    for words in (
        "beside the paper's MSCOCO", "paper, DII: AP", "Hardest documents", "seeds", "numpy",
        "All 13 test documents", "13 test documents", "<b>9", "Spearman",
    ):  # fmt: skip
        assert words in text, words
    # The curves, three examples, the predicted sentences; one trained run has no further curves.
    assert len(page.named("figure")) == 5
    assert all(len(image["alt"]) > 40 for image in page.named("img"))
    figures = {file.name for file in (reproduction / "figures").iterdir()}
    names = ("dynamics", "links-1", "links-2", "links-3", "sentences")
    assert figures == {f"{name}.{suffix}" for name in names for suffix in ("png", "svg")}
    analysis = orjson.loads((reproduction / "analysis.json").read_bytes())
    assert set(analysis["regressions"]) == {"AP b10", "Random"}


def test_the_documents_have_their_matrix_links_and_pictures(reproduction, corpus):
    data = data_of(of(reproduction))
    model = LinkModel.from_pretrained(reproduction / "runs" / "AP-b10")
    by_id = {document.id: document for document in read(corpus)}
    assert len(data["documents"]) == 13 and len(data["pictures"]) == 20
    for one in data["documents"]:
        document = by_id[one["id"]]
        similarity_SV = model.similarity_matrix(document)
        np.testing.assert_allclose(np.array(one["matrix"]) / 100, similarity_SV, atol=0.0051)
        assert one["true"] == [list(link) for link in document.links]
        assert one["credit"] == f"https://example.org, {HOSTILE}CC BY 4.0"
        found = model.link(document)
        assert [link[:2] for link in one["predicted"]] == [[x.sentence, x.image] for x in found]
    assert {one["group"] for one in data["documents"]} == {"hardest", "average", "easiest"}


def test_pictures_and_sentences_can_be_left_out(reproduction, corpus, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(reproduction, folder, ignore=shutil.ignore_patterns("figures", "report.html"))
    write_report(folder, read(corpus), None, corpus / "words.npz", images=False, text=False)
    data = data_of(of(folder))
    assert data["pictures"] == []
    assert {text for one in data["documents"] for _, text in one["sentences"]} == {""}
    everything = b"".join(
        base64.b64decode(image["src"].partition(",")[2]) for image in of(folder).named("img")
    )
    for written in [everything, *(f.read_bytes() for f in (folder / "figures").glob("*.svg"))]:
        assert b"data:image" not in written and b"runs" not in written
    assert "left out of this page on purpose" in "".join(of(folder).text)


def test_without_known_links_the_rest_is_there_and_the_reason_said(corpus, tmp_path):
    unknown = tmp_path / "unknown"
    shutil.copytree(corpus, unknown)
    documents = [Document(d.id, d.sentences, d.images, None, "test") for d in read(corpus)]
    write_jsonl(documents, unknown / "documents.jsonl")
    folder = tmp_path / "out"
    write_run(folder, corpus, scored=False)
    write_report(folder, read(unknown), None, corpus / "words.npz")
    page = of(folder)
    text = "".join(page.text)
    assert "true links are not known" in text and "no true links are known" in text
    assert len(page.named("figure")) == 2  # the objective, and the predicted sentences
    assert len(data_of(page)["documents"]) == 13


def test_a_page_of_baselines_alone_says_that_there_is_no_model(reproduction, corpus, tmp_path):
    folder = tmp_path / "baselines"
    shutil.copytree(reproduction / "runs" / "Random", folder / "runs" / "Random")
    write_report(folder, read(corpus))
    text = "".join(of(folder).text)
    assert "no model was trained" in text and "the grid has not been run" in text


def test_what_is_shown_is_bounded():
    documents = {str(n): Document(str(n), ("s",), ("v",)) for n in range(500)}
    auc = {str(n): float(n) for n in range(500)}
    chosen = choose_for_page(auc, documents, 100)
    assert len(chosen) == 100
    ids = [int(one.document.id) for one in chosen]
    assert ids[:33] == list(range(33)) and ids[-33:] == list(range(467, 500))
    assert {one.group for one in chosen[33:-33]} == {"average"}
    assert max(abs(one.auc - 249.5) for one in chosen[33:-33]) <= 17
    large = Document("d", ("word " * 200,) * 300, ("v",) * 90, ((299, 89),))
    similarity_SV = np.random.default_rng(0).normal(size=(300, 90))
    (one,) = choose_for_page({}, {"d": large}, 5)
    record = page_record(one, similarity_SV, True)
    assert len(record["sentences"]) == SENTENCES_SHOWN and len(record["images"]) == IMAGES_SHOWN
    assert record["sentences"][-1][0] == 299 and record["images"][-1][0] == 89
    assert len(record["sentences"][0][1]) == 300


def test_data_cannot_end_its_block():
    page = Page("t", [], None, {}, [], [], [], [{"id": "</script><!--\u2028", "auc": None}], [], "")
    assert data_of(Tags(render(page)))["documents"][0]["id"] == "</script><!--\u2028"


# ---- in a browser


@pytest.fixture
def opened(browser, reproduction):
    """The page in a dark browser; fails on any error and on any request but for the page."""
    context = browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 800})
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url[:80])
            if not request.url.startswith(("data:", "file:")) else None)  # fmt: skip
    page.goto((reproduction / "report.html").as_uri())
    yield page
    context.close()
    assert not wrong


def test_the_keyboard_chooses_documents(opened):
    assert opened.locator("#list li").count() == 13
    hardest = opened.inner_text("#panel h3")
    opened.focus("#list")
    opened.keyboard.press("ArrowDown")
    second = opened.inner_text("#panel h3")
    opened.keyboard.press("End")
    last = opened.inner_text("#panel h3")
    assert len({hardest, second, last}) == 3
    opened.keyboard.press("Home")
    assert opened.inner_text("#panel h3") == hardest
    selected = opened.locator("#list [aria-selected=true]")
    assert selected.get_attribute("id") == opened.get_attribute("#list", "aria-activedescendant")
    opened.select_option("#order", "easiest")
    # The chosen document stays chosen.
    assert opened.inner_text("#panel h3") == hardest
    assert opened.inner_text("#list li:first-child").endswith(last)


def test_filter_matrix_and_narrow_dark_screens(opened):
    opened.fill("#filter", "owned")
    assert opened.inner_text("#status") == "13 of 13 documents"
    opened.fill("#filter", "no such words")
    assert opened.inner_text("#panel") == "No document matches."
    opened.fill("#filter", "")
    opened.select_option("#group", "easiest")
    assert opened.inner_text("#status") == "4 of 13 documents"
    assert opened.locator(".matrix tbody tr").count() == 5
    assert opened.locator(".matrix td.t").count() == 2
    assert opened.title().startswith("Reproduction")
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 26)"
    assert opened.evaluate("document.images.length") >= 5
    assert opened.evaluate("[...document.images].every(i => i.complete && i.naturalWidth)")
