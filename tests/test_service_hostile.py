"""Hostile uploads, remote images and a full disk: refused, and nothing is left behind."""

import io
import json
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from service_helpers import Service, archive, files_below, photograph, tiny_model

from sightline.fetching import Fetcher
from sightline.service import upload_reading
from sightline.service.limits import ServiceLimits
from sightline.service.upload_reading import Upload, read_upload

httpx = pytest.importorskip("httpx")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tiny_model().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def service(model, tmp_path_factory):
    service = Service(model, "--fetch", folder=tmp_path_factory.mktemp("hostile")).wait()
    yield service
    service.stop()


def post(service, name, data, **options):
    files = {"file": (name, data)}
    return httpx.post(service.url + "/v1/link", files=files, timeout=60, trust_env=False, **options)


def left_behind(folder):
    """What lies in the service's folders for uploads, once it had time to clean up."""
    for _ in range(50):
        left = list(folder.glob("sightline-serve-*/*"))
        if not left:
            break
        time.sleep(0.1)
    return left


# ---- archives


def crafted():
    """Archives whose members lead out of their folder, or are something else than they say."""
    for name in (
        "../out.jpg",
        "/tmp/out.jpg",
        "a/../../out.jpg",
        "..\\out.jpg",
        "C:\\out.jpg",
    ):
        yield (
            name,
            archive({"a.html": '<p>A dog.<img src="out.jpg">', name: photograph()}),
        )
    link = zipfile.ZipInfo("out.jpg")
    link.external_attr = 0o120777 << 16
    yield (
        "a symbolic link",
        archive({"a.html": '<p>A dog.<img src="out.jpg">', link: "/etc/passwd"}),
    )
    inner = archive({"b.html": b" " * 50_000_000})
    yield "an archive within", archive({"inner.zip": inner, "a.html": "<p>A dog."})
    yield "swelling", archive({"a.html": "<p>A dog.", "b.png": b"\0" * 300_000_000})
    yield "swelling text", archive({"a.html": b"<p>A dog. " * 30_000_000})
    picture = io.BytesIO()
    Image.new("L", (7000, 7000)).save(picture, "PNG")
    yield (
        "many pixels",
        archive({"a.html": '<p>A dog runs.<img src="b.png">', "b.png": picture.getvalue()}),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_archive_writes_elsewhere_or_takes_a_gigabyte(service, tmp_path):
    folder = service.log.parent
    before = files_below(folder.parent)
    most, done = [0], threading.Event()

    def sample():
        while not done.wait(0.05):
            most[0] = max(most[0], service.memory())

    watching = threading.Thread(target=sample, daemon=True)
    watching.start()
    seen = {}
    for name, data in crafted():
        answer = post(service, "a.zip", data)
        seen[name] = answer.status_code
        if answer.status_code == 200:
            states = [image["status"] for image in answer.json()["images"]]
            # A link is written as the file of its words, which is no picture.
            harmless = name in ("an archive within", "many pixels")
            assert harmless or states in (["missing"], ["undecodable"]), name
    done.set()
    watching.join()
    assert set(seen.values()) <= {200, 422} and len(seen) == 10, seen
    assert all(seen[name] == 422 for name in ("swelling", "swelling text", "../out.jpg"))
    assert 1e8 < most[0] < 1e9, most
    assert not left_behind(folder)
    assert files_below(folder.parent) == before
    assert not Path("/tmp/out.jpg").exists()


# ---- fetching


@pytest.fixture
def elsewhere():
    """A server with a picture, on this machine, and what it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            data = photograph(1)
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/a.jpg", asked
    server.shutdown()


def test_the_service_fetches_from_no_address_of_its_own_machine(service, elsewhere):
    address, asked = elsewhere
    named = address.replace("127.0.0.1", "localhost")
    page = (
        f'<p>A dog runs.<img src="{address}"><img src="{named}"><img src="http://10.0.0.1/b.jpg">'
    )
    images = post(service, "a.html", page.encode()).json()["images"]
    assert [image["status"] for image in images] == ["missing"] * 3
    assert all("is not a public address" in image["reason"] for image in images)
    assert asked == []


def test_an_upload_has_its_images_fetched_where_their_address_is_allowed(
    elsewhere, tmp_path, monkeypatch
):
    address, asked = elsewhere
    monkeypatch.setattr(
        upload_reading, "Fetcher", lambda limits: Fetcher(limits, allows=lambda _: True)
    )
    (tmp_path / "a.html").write_text(f'<p>A dog runs.<img src="{address}">')
    upload = Upload(str(tmp_path), "a.html", "text/html", "sentence", fetch=True, audit=False)
    (image,) = read_upload(upload, ServiceLimits()).images
    assert image.status is None and (tmp_path / image.file).read_bytes() == photograph(1)
    assert asked == ["/a.jpg"]


# ---- a full disk


@pytest.fixture
def disk(tmp_path):
    """A disk of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs the rights of root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_said_and_nothing_is_left(model, disk, tmp_path):
    service = Service(model, folder=tmp_path, TMPDIR=str(disk)).wait()
    try:
        stored = archive({"a.html": '<p>A dog runs.<img src="b.jpg">', "b.jpg": photograph(1)})
        assert post(service, "a.zip", stored).status_code == 200
        noise = photograph(2, (1400, 1400), "PNG")  # 6 MB, more than the disk
        letters = np.random.default_rng(0).choice(list(b"abcd"), 3_000_000).astype("u1").tobytes()
        large = [
            ("a body that is spooled", {"a.html": "<p>A dog runs.", "b.png": noise}),
            (
                "an archive that is unpacked",
                {"a.html": "<p>A dog runs.", "b.png": letters},
            ),
        ]
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(2_000_000))
        for name, files in large:
            answer = post(service, "a.zip", archive(files))
            assert answer.status_code == 503, name
            assert answer.headers["content-type"] == "application/problem+json"
            assert "No space left" in answer.json()["detail"] and answer.headers["retry-after"]
        ballast.unlink()
        assert not left_behind(disk)
        body = {"sentences": ["A dog."], "images": []}
        assert httpx.post(service.url + "/v1/link", json=body, trust_env=False).status_code == 200
        assert post(service, "a.zip", stored).status_code == 200
        logged = [json.loads(line) for line in service.log.read_text().splitlines()]
        assert not [event for event in logged if event["level"] == "error"]
    finally:
        service.stop()
