"""The API of the service, asked in this process."""

import base64
import io
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from made_files import epub, picture
from PIL import Image
from service_helpers import ARTICLE, archive, files_below, photograph, tiny_model
from starlette.testclient import TestClient

from sightline.alt_report import alt_record
from sightline.alt_text import audit_article, with_candidates
from sightline.article_links import LinkChoices, link_article
from sightline.articles import read_article
from sightline.service.admission import Admission
from sightline.service.app import create_app
from sightline.service.configuration import Configuration
from sightline.service.limits import ServiceLimits
from sightline.service.upload_reading import Upload, read_upload

DOG, CAT = photograph(1), photograph(2)
SENTENCES = ["A dog runs over the grass.", "A cat sleeps on the sofa."]


def opened(model, **configuration):
    client = TestClient(
        create_app(Configuration(model=str(model), **configuration)),
        base_url="http://127.0.0.1",
        raise_server_exceptions=False,
    )
    client.__enter__()
    for _ in range(1200):
        if client.get("/readyz").status_code == 200:
            return client
        time.sleep(0.1)
    raise AssertionError("the model is not loaded after two minutes")


@pytest.fixture(scope="module", autouse=True)
def temporary(tmp_path_factory):
    """All that the services write lies below this folder."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("temporary"))
    yield Path(tempfile.tempdir)
    tempfile.tempdir = before


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service") / "tiny"
    tiny_model().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def client(model):
    client = opened(model)
    yield client
    client.__exit__(None, None, None)


@pytest.fixture(scope="module")
def small(model):
    """A service that allows little."""
    limits = ServiceLimits(
        body_bytes=40_000, images=3, sentences=4, characters=400, pairs=6, pixels=10_000,
        unpacked_bytes=60_000, cached_images=2,
    )  # fmt: skip
    client = opened(model, limits=limits, token="s3cret", cors=("https://a.example",))
    client.headers["Authorization"] = "Bearer s3cret"
    yield client
    client.__exit__(None, None, None)


@pytest.fixture
def article(tmp_path):
    folder = tmp_path / "article"
    (folder / "images").mkdir(parents=True)
    (folder / "pets.html").write_text(ARTICLE)
    (folder / "dog.jpg").write_bytes(DOG)
    (folder / "images" / "cat.jpg").write_bytes(CAT)
    return folder / "pets.html"


ARTICLE_FILES = [
    ("file", ("pets.html", ARTICLE)),
    ("images", ("dog.jpg", DOG)),
    ("images", ("images/cat.jpg", CAT)),
]


def document(**changes):
    images = [{"id": "dog.jpg", "data": base64.b64encode(DOG).decode()}]
    return {"id": "d", "sentences": SENTENCES, "images": images, **changes}


def close(one, other):
    """Equal records but for the last digits of scores, which depend on the batch."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < 1e-4
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    return one == other


def cli_record(article, **choices):
    found = link_article(tiny_model(), read_article(article), LinkChoices(**choices), None)
    return orjson.loads(orjson.dumps({**found, "id": article.name}))


# ---- answers


@pytest.mark.parametrize("policy", ["assignment", "mmc4", "dense"])
def test_an_article_has_the_record_of_the_command_line(client, article, policy):
    answer = client.post("/v1/link", files=ARTICLE_FILES, data={"policy": policy, "matrix": "true"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert close(found, cli_record(article, policy=policy))
    assert [image["status"] for image in found["images"]] == ["ok", "ok", "missing"]
    assert "matrix" not in client.post("/v1/link", files=ARTICLE_FILES).json()


def test_a_document_has_the_record_of_the_command_line(client):
    asked = document(matrix=True, policy="mmc4")
    asked["images"] += [{"data": "AAAA"}, {"data": base64.b64encode(CAT).decode()}]
    found = client.post("/v1/link", json=asked).json()
    assert list(found) == ["id", "links", "images", "sentences", "matrix"]
    assert [image["id"] for image in found["images"]] == ["dog.jpg", "image-2", "image-3"]
    assert [image["status"] for image in found["images"]] == ["ok", "undecodable", "ok"]
    model = tiny_model()
    pixels = [np.asarray(Image.open(io.BytesIO(data))) for data in (DOG, CAT)]
    backbone = model.image_backbone
    features = backbone.features(np.stack([backbone.preprocess(one) for one in pixels]))
    expected_SV = model.encode_sentences(SENTENCES) @ model.encode_images(features).T
    matrix = np.array(found["matrix"], float)
    np.testing.assert_allclose(matrix[:, [0, 2]], expected_SV, atol=1e-4)
    assert np.isnan(matrix[:, 1]).all()
    assert {link["image"] for link in found["links"]} == {0, 2}


def test_documents_without_sentences_or_images_have_no_links(client):
    for changes in ({"sentences": []}, {"images": []}, {"sentences": ["", " "]}):
        found = client.post("/v1/link", json=document(**changes)).json()
        assert found["links"] == [] or changes.get("sentences"), changes


def test_every_form(client):
    def form(name, **headers):
        target = "/v1/link" + (f"?format={name}" if name else "")
        return client.post(target, files=ARTICLE_FILES, data={"policy": "mmc4"}, headers=headers)

    links = form("json").json()["links"]
    assert len(links) == 2
    assert orjson.loads(form("jsonl").content)["links"] == links
    assert len(form("csv").text.splitlines()) == 3
    assert form(None, Accept="text/csv").text == form("csv").text
    collection = form("annotations").json()
    assert collection["total"] == 2 and "TextPositionSelector" in str(collection)
    page = form("html")
    assert page.text.startswith("<!doctype html>") and page.text.count("<img ") == 2
    policy = page.headers["content-security-policy"]
    assert "script-src 'sha256-" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
    assert form(None, Accept=browser).headers["content-type"] == "text/html; charset=utf-8"
    page = client.post("/v1/link?format=html", json=document(sentences=["<script>alert(1)"]))
    assert "<script>alert" not in page.text and page.text.count("<img ") == 1


def test_similarity_is_the_matrix(client, article):
    found = client.post("/v1/similarity", files=ARTICLE_FILES).json()
    assert list(found) == ["id", "matrix", "images", "sentences"]
    assert close(found["matrix"], cli_record(article)["matrix"])
    assert np.shape(found["matrix"]) == (len(found["sentences"]), 3)


def test_alt_has_the_record_of_the_command_line(client, article):
    read = read_article(article)
    alts = with_candidates(
        audit_article(read), link_article(tiny_model(), read, LinkChoices(), None)
    )
    expected = orjson.loads(orjson.dumps({**alt_record(alts), "article": "pets.html"}))
    assert close(client.post("/v1/alt", files=ARTICLE_FILES).json(), expected)
    assert expected["findings"] == 1 and expected["images"][1]["line"] == 1
    report = client.post("/v1/alt?format=text", files=ARTICLE_FILES)
    assert report.text.startswith("pets.html: 3 images, 1 finding")
    assert report.headers["content-type"] == "text/plain; charset=utf-8"
    page = client.post("/v1/alt?format=html", files=ARTICLE_FILES)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "3 images, 1 finding." in page.text and page.text.count('src="data:image/') == 2
    assert 'href="#image-2">2</a>' in page.text and page.text.count("Sentences on offer") == 2


def docx_file(tmp_path):
    import docx

    written = docx.Document()
    written.add_paragraph("A dog runs over the grass.")
    written.add_picture(io.BytesIO(picture(1)))
    written.save(str(tmp_path / "a.docx"))
    return (tmp_path / "a.docx").read_bytes()


def test_every_kind_of_file(client, tmp_path, shared_pdf):
    chapters = {"one.xhtml": '<p>A dog runs over the grass.</p><img src="dog.jpg"/>'}
    book = epub(tmp_path / "a.epub", chapters, {"OEBPS/dog.jpg": DOG}).read_bytes()
    kinds = {
        "a.html": b"<p>A dog runs over the grass.</p><img src=dog.jpg>",
        "a.md": b"A dog runs over the grass.\n\n![dog](dog.jpg)\n",
        "a.txt": b"A dog runs over the grass.\n",
        "a.json": orjson.dumps({"id": "a.json", "sentences": SENTENCES, "images": ["x/dog.jpg"]}),
        "a.epub": book,
        "a.docx": docx_file(tmp_path),
        "a.pdf": shared_pdf,
        "a.zip": archive({"a/page.html": "<p>A dog.</p><img src=../i/dog.jpg>", "i/dog.jpg": DOG}),
        "word": docx_file(tmp_path),
        "book": book,
        "portable": shared_pdf,
    }
    for name, content in kinds.items():
        files = [("file", (name, content, "application/octet-stream"))]
        if name in ("a.html", "a.md", "a.txt", "a.json"):
            files.append(("images", ("dog.jpg", DOG)))
        answer = client.post("/v1/link", files=files)
        assert answer.status_code == 200, (name, answer.text)
        found = answer.json()
        assert [image["status"] for image in found["images"]] == ["ok"], (name, found)
        ids = {"a.zip": "a/page.html", "word": "word.docx", "book": "book.epub"}
        ids["portable"] = "portable.pdf"
        assert found["sentences"] and found["id"] == ids.get(name, name)


@pytest.fixture
def shared_pdf(tmp_path):
    from made_files import PdfFile

    pdf = PdfFile()
    pdf.page([(50, 700, 12, "A dog runs over the grass.")], [(pdf.image(1), 50, 400, 300, 200)])
    return pdf.write(tmp_path / "a.pdf").read_bytes()


def test_an_article_shows_images_above_its_folder_but_none_outside_the_upload(client, tmp_path):
    page = "<p>A dog.</p><img src=../img/x.jpg><img src=/img/x.jpg><img src=../../../secret.jpg>"
    members = {"pages/a.html": page, "img/x.jpg": DOG, "pages/x.jpg": b"another"}
    folder = tmp_path / "upload"
    folder.mkdir()
    (folder / "a.zip").write_bytes(archive(members))
    (tmp_path / "secret.jpg").write_bytes(DOG)
    upload = Upload(str(folder), "a.zip", "application/zip", "sentence", fetch=False, audit=False)
    found = read_upload(upload, ServiceLimits())
    assert found.id == "pages/a.html"
    assert [i.file for i in found.images] == ["unpacked/img/x.jpg", "unpacked/img/x.jpg", None]
    for files in (
        [("file", ("a.zip", archive(members)))],
        [("file", ("pages/a.html", page)), ("images", ("img/x.jpg", DOG))],
    ):
        images = client.post("/v1/link", files=files).json()["images"]
        assert [image["status"] for image in images] == ["ok", "ok", "missing"]


def test_pasted_text_with_images_of_one_name(client):
    files = [("file", ("text", "A dog runs.\n\nA cat sleeps.", "application/octet-stream"))]
    files += [("images", ("image.png", photograph(n, form="PNG"))) for n in range(3)]
    files.append(("images", ("blob", DOG)))
    found = client.post("/v1/link", files=files).json()
    names = [image["id"] for image in found["images"]]
    assert sorted(names) == ["blob.jpg", "image-2.png", "image-3.png", "image.png"]
    assert {image["status"] for image in found["images"]} == {"ok"}
    assert found["sentences"] == ["A dog runs.", "A cat sleeps."]


def test_what_the_page_asks_for_is_linked_as_an_upload(client):
    found = client.post("/v1/page", files=ARTICLE_FILES).json()
    assert len(found["record"]["matrix"]) == len(found["record"]["sentences"])
    found = client.post("/v1/page", json=document()).json()
    assert found["record"]["spans"][1] == [28, 53]


# ---- errors


def faults(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert list(problem) == ["type", "title", "status", "detail", "errors"]
    assert problem["status"] == status and problem["type"].startswith("urn:sightline:problem:")
    return [fault["field"] for fault in problem["errors"]]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"sentences": "A dog."}, ["sentences"]),
        ({"sentences": [1]}, ["sentences.0"]),
        ({"images": [{"id": "a"}]}, ["images.0.data"]),
        ({"images": [{"data": "a"}]}, ["images.0.data"]),
        ({"images": [{"data": "ä"}]}, ["images.0.data"]),
        ({"images": [{"data": "AAAA", "url": "http://127.0.0.1/"}]}, ["images.0.url"]),
        ({"policy": "best"}, ["policy"]),
        ({"max_links": 0}, ["max_links"]),
        ({"max_links": True}, ["max_links"]),
        ({"threshold": 2}, ["threshold"]),
        ({"min_confidence": 0.5, "policy": "mmc4"}, ["min_confidence"]),
        ({"unit": "sentence"}, ["unit"]),
        ({"id": 3, "matrix": "x"}, ["matrix", "id"]),
    ],
)  # fmt: skip
def test_a_bad_field_is_named(client, changes, fields):
    found = faults(client.post("/v1/link", json=document(**changes)), 422)
    assert set(fields) <= set(found)


def test_bad_bodies(client):
    json = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b"\xff", b'{"sentences": NaN}', b"[" * 100_000):
        assert faults(client.post("/v1/link", content=body, headers=json), 422), body
    surrogate = b'{"sentences": ["\\ud800"], "images": []}'
    assert faults(client.post("/v1/link", content=surrogate, headers=json), 422)
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert faults(client.post("/v1/link", content=b"no form", headers=form), 400) == []
    plain = {"Content-Type": "text/plain"}
    assert faults(client.post("/v1/link", content=b"x", headers=plain), 415) == ["Content-Type"]
    assert faults(client.post("/v1/alt", json=document()), 415) == ["Content-Type"]
    assert faults(client.post("/v1/link?format=xml", json=document()), 422) == ["format"]
    assert faults(client.get("/v1/none"), 404) == []
    assert faults(client.get("/v1/link"), 405) == []


@pytest.mark.parametrize("route", ["link", "similarity", "alt"])
def test_a_parameter_of_the_address_that_is_not_read_is_refused(client, route):
    asked = client.post(f"/v1/{route}?min_confidence=0.9", files=ARTICLE_FILES)
    assert faults(asked, 422) == ["min_confidence"]
    assert "belongs into the body (-F min_confidence=0.9)" in asked.json()["detail"]
    asked = client.post(f"/v1/{route}?formt=html", files=ARTICLE_FILES)
    assert faults(asked, 422) == ["formt"]
    known = client.post(f"/v1/{route}?format=json", files=ARTICLE_FILES)
    assert known.status_code == (422 if route == "similarity" else 200)


@pytest.mark.parametrize(
    ("files", "data", "field"),
    [
        ([("images", ("dog.jpg", DOG))], {}, "file"),
        ([("file", ("a.html", "a")), ("file", ("b.html", "b"))], {}, "file"),
        ([("file", ("a.html", "a")), ("images", ("b.html", "b"))], {}, "images"),
        ([("file", ("a.xyz", b"\x00\x01"))], {}, "file"),
        ([("file", ("a.pdf", b"%PDF-1.7 broken"))], {}, "file"),
        ([("file", ("a.docx", b"PK\3\4 broken"))], {}, "file"),
        ([("file", ("a.zip", archive({"a.html": "a", "b.html": "b"})))], {}, "file"),
        ([("file", ("a.zip", archive({"a.jpg": DOG})))], {}, "file"),
        ([("file", ("a.json", b"{}"))], {}, "file.id"),
        ([("file", ("a.json", b"{"))], {}, "file"),
        ([("file", ("a.html", "a"))], {"policy": "best"}, "policy"),
        ([("file", ("a.html", "a"))], {"color": "red"}, "color"),
        ([("file", ("a.html", "a"))], {"unit": "word"}, "unit"),
        ([("file", ("a.html", "a")), ("policy", ("x", "x"))], {}, "policy"),
        ([("file", ("a.html", "a")), ("images", ("a.html/x.jpg", DOG))], {}, "images"),
    ],
)
def test_a_bad_upload_is_named(client, files, data, field):
    assert faults(client.post("/v1/link", files=files, data=data), 422) == [field]


def test_alt_takes_articles_only(client):
    record = {"id": "d", "sentences": SENTENCES, "images": []}
    files = [("file", ("a.json", orjson.dumps(record)))]
    assert faults(client.post("/v1/alt", files=files), 422) == ["file"]


# ---- hostile uploads

#: Names that an attacker gives: where he would like to write.
TRAVERSAL = ["../x.html", "/tmp/x.html", "..\\x.html", "a/../../x.html", "C:\\x.html"]


@pytest.mark.parametrize("name", TRAVERSAL)
def test_no_name_leads_out_of_the_folder(client, temporary, name):
    files = [("file", ("a.zip", archive({name: ARTICLE, "b.html": ARTICLE})))]
    assert faults(client.post("/v1/link", files=files), 422) == ["file"]
    image = name.replace("html", "jpg")
    if not name.startswith("C:"):  # of which only the last part gets through
        assert faults(client.post("/v1/link", files=[("file", (name, ARTICLE))]), 422) == ["file"]
        files = [("file", ("a.html", ARTICLE)), ("images", (image, DOG))]
        assert faults(client.post("/v1/link", files=files), 422) == ["images"]
    files = [("file", ("a.json", orjson.dumps(document(images=[image]))))]
    found = client.post("/v1/link", files=files).json()
    assert found["images"][0]["status"] == "missing"
    uploads = client.app.state.service.reception.folder
    written = files_below(temporary)
    assert not {file for file in written if uploads not in file.parents}
    assert not any(file.name in ("x.html", "x.jpg") for file in written)
    assert not Path("/tmp/x.html").exists() and not Path("/tmp/x.jpg").exists()


def test_images_outside_the_upload_are_not_read(client):
    page = "<p>A dog runs over the grass.</p>" + "".join(
        f'<img src="{source}">' for source in ("/etc/passwd", "../../x.jpg", "file:///etc/hosts")
    )
    found = client.post("/v1/link", files=[("file", ("a.html", page))]).json()
    assert [image["status"] for image in found["images"]] == ["missing"] * 3
    page = '<p>A dog runs over the grass.</p><img src="http://127.0.0.1/a.jpg">'
    found = client.post("/v1/link", files=[("file", ("a.html", page))]).json()
    assert found["images"][0]["reason"] == "The image is remote and was not fetched."


def test_archive_bombs_are_refused(client):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        file.writestr("a.html", b"<p>" + b" " * 30_000_000)
    files = [("file", ("a.zip", inner.getvalue()))]
    answer = client.post("/v1/link", files=files)
    assert faults(answer, 422) == ["file"] and "bomb" in answer.json()["detail"]
    many = archive({f"{n}.txt": b"" for n in range(2_001)})
    assert "2,001 files" in client.post("/v1/link", files=[("file", ("m.zip", many))]).text
    clash = archive({"a.jpg": DOG, "a.jpg/b.jpg": DOG, "a.html": ARTICLE})
    assert faults(client.post("/v1/link", files=[("file", ("c.zip", clash))]), 422) == ["file"]


def test_uploads_are_removed(client):
    folder = client.app.state.service.reception.folder
    client.post("/v1/link", files=ARTICLE_FILES)
    client.post("/v1/link", files=[("file", ("a.pdf", b"%PDF-1.7 broken"))])
    for _ in range(100):
        if not list(folder.iterdir()):
            return
        time.sleep(0.05)
    raise AssertionError(list(folder.iterdir()))


# ---- limits


def test_a_body_is_counted_as_it_arrives(small):
    json = {"Content-Type": "application/json"}

    def pieces():
        for _ in range(50):
            yield b" " * 1_000

    assert faults(small.post("/v1/link", content=pieces(), headers=json), 413) == ["body"]
    assert faults(small.post("/v1/link", content=b" " * 40_001, headers=json), 413) == ["body"]
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert faults(small.post("/v1/link", content=pieces(), headers=form), 413) == ["body"]
    long = [("file", ("a.txt", "a" * 40_000))]
    assert faults(small.post("/v1/link", files=long), 413) == ["body"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"sentences": ["a"] * 5, "images": []}, "sentences", "5 sentences"),
        ({"images": document()["images"] * 4}, "images", "4 images"),
        ({"sentences": ["a" * 401]}, "sentences", "401 characters"),
        ({"sentences": ["a"] * 4, "images": document()["images"] * 2}, "sentences", "8 pairs"),
    ],
)
def test_a_document_may_be_only_so_large(small, changes, field, words):
    answer = small.post("/v1/link", json=document(**changes))
    assert faults(answer, 422) == [field]
    assert words in answer.json()["detail"] and "the limit" in answer.json()["detail"]


def test_an_upload_may_be_only_so_large(small):
    page = "".join(f"<p>Sentence {n} is here.</p>" for n in range(5))
    answer = small.post("/v1/link", files=[("file", ("a.html", page))])
    assert faults(answer, 422) == ["file"] and "5 sentences" in answer.json()["detail"]
    swollen = archive({"a.html": b"a", "b.jpg": b"0" * 45_000})
    assert faults(small.post("/v1/link", files=[("file", ("a.zip", swollen))]), 422) == ["file"]
    files = [("file", ("a.txt", "a"))] + [("images", (f"{n}.jpg", DOG)) for n in range(4)]
    assert faults(small.post("/v1/link", files=files), 400) == []


def test_an_image_may_have_only_so_many_pixels(small):
    big = base64.b64encode(photograph(1, (200, 60))).decode()
    found = small.post("/v1/link", json=document(images=[{"data": big}])).json()
    assert found["images"][0]["status"] == "too_large"
    assert "10,000" in found["images"][0]["reason"]


def test_work_that_takes_too_long_is_cancelled(client):
    """The reader of an upload, which takes longer than this, is killed and replaced."""
    state = client.app.state.service
    admission = client.app.middleware_stack
    while not isinstance(admission, Admission):
        admission = admission.app
    limits = admission.limits
    try:
        admission.limits = replace(limits, seconds=0.001)
        answer = client.post("/v1/link", files=ARTICLE_FILES)
        assert faults(answer, 503) == [] and answer.headers["retry-after"] == "1"
    finally:
        admission.limits = limits
    assert admission.active == 0 and admission.held_bytes == 0
    assert client.post("/v1/link", files=ARTICLE_FILES).status_code == 200
    assert state.reception.room._value == limits.articles


# ---- operation


def test_the_token(small):
    assert small.get("/v1/models").status_code == 200
    for value in ("", "Bearer", "Bearer wrong", "Basic s3cret", "Bearer s3cretx", "Bearer ä"):
        answer = small.get("/v1/models", headers={"Authorization": value.encode()})
        assert faults(answer, 401) == ["Authorization"], value
        assert answer.headers["www-authenticate"] == "Bearer"
        assert small.post("/v1/link", headers={"Authorization": value.encode()}).status_code == 401
    nobody = {"Authorization": ""}
    assert small.get("/metrics", headers=nobody).status_code == 401
    assert small.get("/openapi.json", headers=nobody).status_code == 401
    assert small.get("/healthz", headers=nobody).status_code == 200
    assert small.get("/readyz", headers=nobody).status_code == 200


def test_other_origins_and_hosts(client, small):
    origin = {"Origin": "https://a.example"}
    assert "access-control-allow-origin" not in client.get("/v1/models", headers=origin).headers
    allowed = small.get("/v1/models", headers=origin).headers
    assert allowed["access-control-allow-origin"] == "https://a.example"
    other = small.get("/v1/models", headers={"Origin": "https://b.example"}).headers
    assert "access-control-allow-origin" not in other
    preflight = {**origin, "Access-Control-Request-Method": "POST", "Authorization": ""}
    assert small.options("/v1/link", headers=preflight).status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example:80", ""):
        assert faults(client.get("/v1/models", headers={"Host": host}), 421) == []
    for host in ("localhost", "LOCALHOST:8000", "[::1]:80", "127.0.0.1:1"):
        assert client.get("/v1/models", headers={"Host": host}).status_code == 200


def test_every_answer_has_its_headers(client):
    for answer in (client.get("/healthz"), client.get("/none"), client.post("/v1/link")):
        headers = answer.headers
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert len(headers["x-request-id"]) == 16 and "server" not in headers
    asked = client.get("/healthz", headers={"X-Request-ID": "abc-1.2_3"})
    assert asked.headers["x-request-id"] == "abc-1.2_3"
    for bad in ("a b", "x" * 129, "<a>"):
        answer = client.get("/healthz", headers={"X-Request-ID": bad})
        assert answer.headers["x-request-id"] != bad
    assert "text/html" in client.get("/").headers["content-type"]
    assert client.get("/docs").status_code == 404  # its scripts lie elsewhere


def test_models_and_metrics(client):
    (found,) = client.get("/v1/models").json()["models"]
    limits = found.pop("limits")
    assert found == {
        "name": "tiny", "backbone": "efficientnet-lite0", "dimension": 8, "words": 10,
        "calibrated": False,
    }  # fmt: skip
    assert limits["images"] == 200 and limits["body_bytes"] == 32 * 2**20
    fresh = base64.b64encode(photograph(77)).decode()
    hits = 'sightline_image_cache_total{result="hit"}'

    def value(name):
        lines = client.get("/metrics").text.splitlines()
        return next((float(li.rpartition(" ")[2]) for li in lines if li.startswith(name)), 0.0)

    before = value(hits)
    for _ in range(2):
        client.post("/v1/link", json=document(images=[{"data": fresh}]))
    assert value(hits) == before + 1
    route = 'sightline_requests_total{method="POST",route="/v1/link",status="200"}'
    assert value(route) >= 2
    assert value('sightline_batch_items_count{kind="images"}') >= 1
    assert value("sightline_requests_active") == 0
    client.get("/made-up-" + "x" * 50)
    assert "made-up" not in client.get("/metrics").text


def test_an_image_that_comes_twice_at_the_same_time_is_computed_once(client):
    cache = "sightline_image_cache_total"
    counted = [f'{cache}{{result="{word}"}}' for word in ("miss", "shared")]
    counted.append('sightline_batch_items_sum{kind="images"}')

    def numbers():
        lines = client.get("/metrics").text.splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return np.array([float(found.get(name, 0)) for name in counted])

    before = numbers()
    image = {"data": base64.b64encode(photograph(4711)).decode()}
    answer = client.post("/v1/link", json=document(images=[image] * 5))
    assert answer.status_code == 200
    assert (numbers() - before).tolist() == [1, 4, 1]


def test_the_cache_is_bounded(small):
    cache = small.app.state.service.engine.cache
    for number in range(5):
        data = base64.b64encode(photograph(number)).decode()
        small.post("/v1/link", json=document(images=[{"data": data}]))
    assert len(cache) == 2


def test_the_description_has_examples_that_work(client):
    described = client.get("/openapi.json").json()
    assert {"/v1/link", "/v1/similarity", "/v1/alt", "/v1/models", "/metrics"} <= set(
        described["paths"]
    )
    body = described["paths"]["/v1/link"]["post"]["requestBody"]["content"]
    example = body["application/json"]["example"]
    found = client.post("/v1/link", json=example)
    assert found.status_code == 200 and found.json()["images"][0]["status"] == "ok"
    assert body["multipart/form-data"]["schema"]["required"] == ["file"]
    assert "429" in described["paths"]["/v1/link"]["post"]["responses"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz"])
def test_monitors_may_ask_for_heads_alone(client, path):
    answer = client.head(path)
    assert answer.status_code == 200 and answer.content == b""
