"""What the web page asks its server for: files, examples, other forms, documents of a corpus."""

import base64
import hashlib
import io
import re
import zipfile
from importlib.resources import files

import numpy as np
import orjson
import pytest
from service_helpers import photograph, tiny_model
from test_service import opened

from sightline.article_page import live_hashes
from sightline.choices import ARTICLE_SUFFIXES, PAGE_SUFFIXES
from sightline.confidence import Calibration
from sightline.corpus import read
from sightline.decode_pool import DecodePool
from sightline.evaluation import score_document
from sightline.link_records import link_records, open_images
from sightline.linking import link
from sightline.service.bundled_examples import EXAMPLES
from sightline.service.corpus_view import CorpusView
from sightline.service.live_article import CHOICES, live_document
from sightline.service.web import page_files, page_policy

PAGE = files("sightline.service") / "page"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "pets"
    (folder / "images").mkdir(parents=True)
    for number in range(6):
        (folder / "images" / f"{number}.jpg").write_bytes(photograph(number))
    (folder.parent / "secret.jpg").write_bytes(photograph(99))
    (folder / "images" / "link.jpg").symlink_to(folder.parent / "secret.jpg")
    images = [[0, 1], [2, 3], [4, 5]]
    sentences = ["A dog runs.", "A cat sleeps.", "The grass."]
    records = [
        {"id": f"d{n}", "sentences": sentences, "images": [f"images/{v}.jpg" for v in pair],
         "links": links, "split": split}
        for n, (pair, links, split) in enumerate(
            zip(images, ([[0, 0], [1, 1]], [[2, 0]], None), ("train", "val", "val"), strict=True)
        )
    ]  # fmt: skip
    outside = [
        "../secret.jpg",
        str(folder.parent / "secret.jpg"),
        "images/link.jpg",
        "images/0.jpg",
    ]
    records.append({"id": "outside", "sentences": ["A dog."], "images": outside, "split": "val"})
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    (folder / "documents.jsonl").write_bytes(lines)
    return folder


@pytest.fixture(scope="module")
def client(tmp_path_factory, corpus):
    model = tmp_path_factory.mktemp("model") / "tiny"
    tiny_model().save_pretrained(model)
    client = opened(model, corpora=(str(corpus),))
    yield client
    client.__exit__(None, None, None)


def test_the_page_is_its_own_files_under_a_strict_policy(client):
    answer = client.get("/")
    rules = dict(
        rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";")
    )
    assert rules["default-src"] == "'none'" and rules["frame-ancestors"] == "'none'"
    assert rules["img-src"] == "'self' data: blob:" and rules["connect-src"] == "'self'"
    assert "unsafe" not in page_policy() and "http" not in page_policy()
    scripts, styles = live_hashes()
    assert rules["script-src"] == f"'self' {scripts}" and rules["style-src"] == f"'self' {styles}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    text = answer.text
    assert not re.search(r"<style|<script(?! type=\"module\" src)|\son\w+=|\sstyle=", text)
    named = set(re.findall(r'(?:src|href)="page/([^"]+)"', text))
    assert named and named <= set(page_files())
    for name in page_files():
        found = client.get(f"/page/{name}")
        assert found.status_code == 200 and found.content == (PAGE / name).read_bytes()
        again = client.get(f"/page/{name}", headers={"If-None-Match": found.headers["etag"]})
        assert again.status_code == 304 and not again.content
    assert len(page_files()) >= 9


def test_the_pages_own_scripts_never_make_markup_of_text():
    scripts = {name: text.decode() for name, text in page_files().items() if name.endswith(".js")}
    data = files("sightline") / "data"
    scripts |= {name: (data / name).read_text() for name in ("article_page.js", "article_live.js")}
    assert len(scripts) >= 9
    for name, text in scripts.items():
        banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        assert not re.search(banned, text), name
        assert not re.search(r"https?://", text), name


def test_the_page_knows_the_endings_of_articles():
    script = (PAGE / "intake.js").read_text("utf-8")
    for name, expected in (
        ("ARTICLE", {*ARTICLE_SUFFIXES, ".zip"}),
        ("NAMES_IMAGES", PAGE_SUFFIXES),
    ):
        (words,) = re.findall(rf"const {name} = /\\\.\(([^)]*)\)\$/i;", script)
        endings = {f".{word.replace('?', '')}" for word in words.split("|")}
        assert endings | ({".htm"} if "html?" in words else set()) == expected


@pytest.mark.parametrize(
    "path", ["/page/..%2fweb.py", "/page/%2e%2e/web.py", "/page/nothing.js", "/page/web.py",
             "/v1/examples/..%2f..", "/v1/examples/nothing", "/v1/corpora/1/documents",
             "/v1/corpora/0/documents/9", "/v1/corpora/0/documents/-1"]
)  # fmt: skip
def test_nothing_else_is_served(client, path):
    client.get("/v1/corpora/0/documents")
    for _ in range(100):
        answer = client.get(path)
        if answer.status_code != 503:
            break
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_examples_say_whose_they_are_and_can_be_linked(client):
    examples = client.get("/v1/examples").json()
    assert [one["name"] for one in examples] == [one.name for one in EXAMPLES]
    for one in examples:
        assert ("CC BY" in one["credit"] or "MIT" in one["credit"]) and one["address"].startswith(
            "https://"
        )
        data = client.get(f"/v1/examples/{one['name']}").content
        assert len(data) < 400_000
        assert data == client.get(f"/v1/examples/{one['name']}").content
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        answer = client.post("/v1/page", files={"file": (f"{one['name']}.zip", data)})
        live = answer.json()
        assert all(image["status"] == "ok" for image in live["record"]["images"])
        assert len(live["record"]["images"]) == len(names) - 1 and live["title"] == one["title"]
    assert len(examples) == 3


def test_an_article_comes_with_the_links_of_every_policy(client):
    data = client.get("/v1/examples/tides").content
    live = client.post("/v1/page", files={"file": ("tides.zip", data)}).json()
    record, page = live["record"], live["page"]
    assert live["doubt"].startswith("Beware: the model knows only")  # it is a tiny one
    similarity_SV = np.array(record["matrix"])
    assert similarity_SV.shape == (len(record["sentences"]), 5)
    assert [(one["policy"], one["max_links"]) for one in live["choices"]] == list(CHOICES)
    for one in live["choices"]:
        expected = link(similarity_SV, one["policy"], one["max_links"])
        found = [(pair["sentence"], pair["image"]) for pair in one["links"]]
        assert found == [(pair.sentence, pair.image) for pair in expected]
        assert len(one["strengths"]) == len(one["links"])
        assert all(0 <= strength <= 1 for strength in one["strengths"])
    assert live["choices"][0]["links"] == record["links"]
    assert live["text"][slice(*record["spans"][3])] == record["sentences"][3]
    # The same renderer as the command line's, here with every sentence marked and no links.
    assert len(set(re.findall(r'data-sentence="(\d+)"', page))) == len(record["sentences"])
    assert 'class="badge"' not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for code in re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", page, re.S):
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert digest in policy and digest in page_policy()


def test_corrected_links_are_written_in_the_forms_of_the_command_line(client):
    record = {
        "id": "a.html", "sentences": ["A dog.", "A cat."], "images": [{"id": "d.jpg"}],
        "links": [{"sentence": 1, "image": 0, "score": 0.5, "confidence": None}],
        "spans": [[0, 6], [7, 13]],
    }  # fmt: skip
    body = {"record": record, "text": "A dog. A cat."}
    lines = client.post("/v1/forms/csv", json=body).text.splitlines()
    assert lines[1] == "a.html,d.jpg,1,A cat.,0.5,,7,13,0"
    collection = client.post("/v1/forms/annotations", json=body).json()
    assert collection["total"] == 1
    wrong = [
        {"record": {**record, "links": [{"sentence": 2, "image": 0}]}},
        {"record": {**record, "links": [{"sentence": 0, "image": -1}]}},
        {"record": {**record, "spans": []}},
        {"record": {**record, "links": [{"sentence": 0, "image": 0, "score": "x"}]}},
        {"text": "x"}, [], None,
    ]  # fmt: skip
    for body in wrong:
        answer = client.post("/v1/forms/csv", json=body)
        assert answer.status_code == 422, body
        assert answer.json()["detail"]
    assert client.post("/v1/forms/xml", json=body).status_code == 422


def test_a_corrected_page_needs_a_record_that_fits(client):
    data = client.get("/v1/examples/tides").content
    record = {"id": "t", "sentences": [], "images": [],
              "links": [{"sentence": 3, "image": 1, "score": None}]}  # fmt: skip
    form = {"files": {"file": ("tides.zip", data)}}
    answer = client.post("/v1/page/html", data={"record": orjson.dumps(record)}, **form)
    assert answer.status_code == 200 and answer.text.count('class="badge"') == 1
    assert "corrected by hand" in answer.text
    record["links"][0]["image"] = 5
    answer = client.post("/v1/page/html", data={"record": orjson.dumps(record)}, **form)
    assert answer.status_code == 422 and answer.json()["errors"][0]["field"] == "links.0"
    assert client.post("/v1/page/html", **form).status_code == 422
    assert client.post("/v1/page/html", json={}).status_code in (400, 415, 422)


def test_a_corpus_is_scored_as_evaluate_does(corpus):
    model = tiny_model()
    with DecodePool(1) as pool:
        view = CorpusView(corpus, model, pool)
        assert view.state()["scored"] == 0
        view.start()
        view.start()
        view._thread.join()
        state = view.state()
        assert (state["documents"], state["scored"], state["error"]) == (4, 4, None)
        assert state["splits"] == ["train", "val"] and state["name"] == "pets"
        images = open_images(model, read(corpus), pool=pool)
        documents = list(read(corpus))
        for row, document, record in zip(
            view.rows, documents, link_records(model, documents, images, matrix=True), strict=True
        ):
            assert row.links == len(record["links"])
            if document.links and document.id != "outside":
                score = score_document("", np.array(record["matrix"]), document.links)
                assert row.auc == pytest.approx(score.auc)
            else:
                assert row.auc is None
        total, rows = view.listed("auc", False, None, 0, 10)
        assert total == 4 and [row.auc is None for row in rows] == [False, False, True, True]
        assert rows[0].auc <= rows[1].auc
        assert view.listed("auc", True, None, 0, 10)[1][0] is rows[1]
        assert [row.index for row in view.listed("corpus", False, "val", 1, 1)[1]] == [2]
        live = view.document(0)
        assert live["truth"] == [[0, 0], [1, 1]] and live["row"]["index"] == 0
        assert live["page"].count('src="data:image/') == 2
        view.stop()


def test_a_corpus_shows_no_image_from_outside_its_folder(corpus, client):
    document = list(read(corpus))[3]
    statuses = [{"id": name, "status": "ok", "reason": None} for name in document.images]
    record = {"id": "outside", "sentences": ["A dog."], "images": statuses,
              "links": [], "matrix": [[0.1, 0.2, 0.3, 0.4]]}  # fmt: skip
    with DecodePool(1) as pool:
        page = live_document(document, record, corpus, pool)["page"]
    assert page.count('src="data:image/') == 1 and page.count("no picture:") == 3
    for _ in range(200):
        answer = client.get("/v1/corpora/0/documents/3")
        if answer.status_code == 200:
            break
    assert answer.json()["page"].count('src="data:image/') == 1


def test_a_calibrated_model_gives_the_links_of_every_policy_a_confidence(corpus):
    document = next(iter(read(corpus)))
    statuses = [{"id": name, "status": "ok", "reason": None} for name in document.images]
    statuses[0]["status"] = "missing"
    record = {"id": "d", "sentences": list(document.sentences), "images": statuses, "links": [],
              "matrix": [[None, 0.4], [None, 0.2], [None, -0.1]]}  # fmt: skip
    calibration = Calibration(sharpness=5.0, level=0.1, documents=9)
    expected_SV = calibration.confidences(np.array([[0.4], [0.2], [-0.1]]))
    with DecodePool(1) as pool:
        live = live_document(document, record, corpus, pool, calibration)
        plain = live_document(document, record, corpus, pool)
    assert (live["measure"], plain["measure"]) == ("confidence", "score")
    links = [one for choice in live["choices"] for one in choice["links"]]
    assert len(links) >= 5 and {one["image"] for one in links} == {1}
    for one in links:
        assert one["confidence"] == pytest.approx(expected_SV[one["sentence"], 0])


def test_a_corpus_that_cannot_be_scored_says_why(tmp_path):
    (tmp_path / "documents.jsonl").write_text(
        '{"id": "a", "sentences": ["A dog."], "images": ["a"]}\n'
    )
    (tmp_path / "features").mkdir()
    with DecodePool(1) as pool:
        view = CorpusView(tmp_path, tiny_model(), pool)
        view.start()
        view._thread.join()
    assert view.state()["error"] and view.state()["scored"] == 0
