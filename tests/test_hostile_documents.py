"""Hostile documents through `read_article`: text or a sentence, within limits, neighbours unharmed.

Each is read in a process of its own, whose CPU time and memory, children included, are looked at:
promise 3 of docs/security.md.
"""

import importlib.util
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import docx
import pytest
from command_server import program
from made_files import PdfFile, epub, picture
from PIL import Image

from sightline.articles import read_article
from sightline.images import Status, decode
from sightline.problems import SightlineError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the system keeps no limits")

CPU_SECONDS, MEMORY_BYTES = 10, 1_000_000_000
CHECKS = Path(__file__).parents[1] / "checks"
READ = """
import json, resource, sys
from pathlib import Path
from sightline.articles import read_article
from sightline.problems import SightlineError
try:
    article = read_article(Path(sys.argv[1]))
    found = {"words": sum(len(s.split()) for s in article.document.sentences),
             "left_out": article.page.left_out.text.total(), "images": len(article.images)}
except SightlineError as error:
    found = {"error": str(error)}
own, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
found["seconds"] = own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime
# Linux counts the process before exec into ru_maxrss, which is all of a long test run.
status = Path("/proc/self/status")
peak = own.ru_maxrss
if status.exists():
    peak = int(status.read_text().partition("VmHWM:")[2].split()[0])
found["bytes"] = max(peak, theirs.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
print(json.dumps(found))
"""


def read_apart(path):
    """Read an article in a new process; gives what was found and what it cost."""
    command = [sys.executable, "-c", READ, str(path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-1000:]
    return json.loads(done.stdout)


def within_limits(found):
    return found["seconds"] < CPU_SECONDS and found["bytes"] < MEMORY_BYTES


def word_file(path, change=None, members=None):
    """A Word document; `change` rewrites its text part, `members` are put beside it."""
    document, stream = docx.Document(), io.BytesIO()
    document.add_paragraph("Some text.")
    document.save(stream)
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if change and name == "word/document.xml" else data)
        for name, data in (members or {}).items():
            new.writestr(name, data)
    return path


def body(data):
    return lambda xml: xml.replace(b"<w:body>", b"<w:body>" + data)


LAUGHS = (
    "<!DOCTYPE a [<!ENTITY a 'ha'>"
    + "".join(
        f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)
PARAGRAPH = b"<w:p><w:r><w:t>%s</w:t></w:r></w:p>"

# Each gives a file of that name, and the words it must have: as many as said, or an error with it.
PAGES = {
    "nested.html": ("<div>" * 300 + "deep", 1),
    "nested-far.html": ("<div>" * 200_000 + "deep", 1),
    "text-node.html": ("<p>" + "word " * 2_000_000, 2_000_000),
    "attributes.html": ("<p " + " ".join(f"a{i}=1" for i in range(100_000)) + ">deep", 1),
    "one-attribute.html": (f"<p title='{'x' * 10_000_000}'>deep", 1),
    "images.html": ("<p>deep" + "<img src=a.png>" * 50_000, 1),
    "entities.xhtml": (f"{LAUGHS}<html><body><p>&i; deep</p></body></html>", 1),
    "external.xhtml": ("<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/hostname'>]><p>&b; deep", 1),
    "no-space.html": ("<p>" + "x" * 10_000_000, 1),
    "nested.md": ("> " * 300 + "deep", 1),
    "lists.md": ("".join(" " * (2 * i) + "- deep\n" for i in range(300)), 300),
    "brackets.md": ("[" * 50_000 + "deep", 1),
    "emphasis.md": ("*a **b " * 20_000, 40_000),
    "links.md": ("[a](<b" * 20_000, 1),
    "text-node.md": ("word " * 2_000_000, 2_000_000),
    "text.txt": ("word " * 2_000_000, 2_000_000),
    "bytes.txt": (bytes(range(256)) * 8_000, 1),
    "paragraphs.txt": ("A cat, e.g. Rex, sleeps at 3 p.m. Why?\n\n" * 60_000, 60_000 * 9),
    "items.html": ("<p>" + "<br>- A cat, e.g. Rex, sleeps at 3 p.m." * 30_000, 30_000 * 8),
}


@pytest.mark.parametrize("name", PAGES)
def test_hostile_pages_keep_their_text_within_the_limits(tmp_path, name):
    content, words = PAGES[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_apart(path)
    assert within_limits(found), found
    assert found["words"] >= words or found["words"] + found["left_out"] >= words, found


def deep_pdf(path):
    data = PdfFile().page([(50, 700, 10, "Text.")]).write(path).read_bytes()
    path.write_bytes(data.replace(b"/Lang (en-GB)", b"/Lang (en-GB) /A " + b"[" * 100_000))


def pages_in_a_circle(path):
    data = PdfFile().page([(50, 700, 10, "Text.")]).write(path).read_bytes()
    path.write_bytes(data.replace(b"/Kids [", b"/Kids [2 0 R 2 0 R 1 0 R "))


def huge_counts(path):
    data = PdfFile().page([(50, 700, 10, "Text.")]).write(path).read_bytes()
    path.write_bytes(data.replace(b"/Count 1", b"/Count 2000000000"))


def packed_operators(path):
    """A page whose content unpacks to 70 MB of drawing."""
    import zlib

    file = PdfFile().page([(50, 700, 10, "Text.")])
    packed = zlib.compress(b"0 0 m 1 1 l S\n" * 5_000_000, 9)
    number = file.stream(b"/Filter /FlateDecode", packed)
    data = file.write(path).read_bytes()
    path.write_bytes(data.replace(b"/Contents 5 0 R", b"/Contents %d 0 R" % number))


CONTAINERS = {
    "deep.pdf": deep_pdf,
    "circle.pdf": pages_in_a_circle,
    "counts.pdf": huge_counts,
    "operators.pdf": packed_operators,
    "laughs.docx": lambda p: word_file(p, lambda _: f"{LAUGHS}<a>&i;</a>".encode()),
    "external.docx": lambda p: word_file(
        p, lambda _: b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/hostname'>]><a>&b;</a>"
    ),
    "deep.docx": lambda p: word_file(p, body(b"<w:tbl><w:tr><w:tc>" * 300)),
    "text-node.docx": lambda p: word_file(p, body(PARAGRAPH % (b"word " * 2_000_000))),
    "paragraphs.docx": lambda p: word_file(p, body(PARAGRAPH % b"word" * 150_000)),
    "attributes.docx": lambda p: word_file(
        p, body(b"<w:p %s/>" % b" ".join(b"a%d='1'" % i for i in range(100_000)))
    ),
    "bomb.docx": lambda p: word_file(p, lambda data: data + b" " * 100_000_000),
    "members.docx": lambda p: word_file(p, members={f"{i}.xml": b"" for i in range(25_000)}),
    "outside.docx": lambda p: word_file(p, members={"../../../../outside": b"x", "/outside": b"x"}),
    "encrypted.docx": lambda p: p.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096)),
    "laughs.epub": lambda p: epub(p, {"a.xhtml": "<p>x</p>"}, extra={
        "OEBPS/content.opf": f"{LAUGHS}<a>&i;</a>"}),
    "nested.epub": lambda p: epub(p, {"a.xhtml": "<div>" * 100_000 + "deep"}),
    "bomb.epub": lambda p: epub(p, {"a.xhtml": "x" * 40_000_000}),
    "outside.epub": lambda p: epub(p, {"../../a.xhtml": "<p>x</p><img src='/etc/hostname'/>"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", CONTAINERS)
def test_hostile_containers_are_read_or_refused_within_the_limits(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    CONTAINERS[name](folder / name)
    found = read_apart(folder / name)
    assert within_limits(found), found
    if "error" in found:
        assert name in found["error"]
        # PDFium ends itself when it gets no more memory; all else is refused in so many words.
        assert "crash" not in found["error"] or name == "operators.pdf"
    else:
        assert found["words"] or found["left_out"]
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", name]  # nothing was unpacked


def test_the_measure_sees_what_is_too_much(tmp_path, monkeypatch):
    """The control: a reader that swells and spins is over the limits."""
    swell = "data = b'x' * 1_200_000_000\nend = __import__('time').process_time() + 0.5\n"
    spin = "while __import__('time').process_time() < end: pass\n"
    monkeypatch.setattr(sys.modules[__name__], "READ", swell + spin + READ)
    monkeypatch.setattr(sys.modules[__name__], "CPU_SECONDS", 0.5)
    path = tmp_path / "a.txt"
    path.write_text("Text.")
    found = read_apart(path)
    assert found["words"] == 1
    assert found["bytes"] > MEMORY_BYTES and found["seconds"] > 0.5
    assert not within_limits(found)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_neighbours_of_hostile_articles_are_linked(tmp_path):
    """Of five articles two are hostile; the other three come out as without them."""
    page = "<p>A cat sleeps on the sofa.</p><img src=a.png><p>Rain falls.</p>"
    for number in (1, 3, 5):
        (tmp_path / f"{number}.html").write_text(page)
    (tmp_path / "a.png").write_bytes(picture())

    def linked():
        paths = sorted(str(p) for p in tmp_path.iterdir() if p.suffix != ".png")
        done = subprocess.run([program(), "link", *paths], capture_output=True, timeout=300)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    alone, expected = linked()
    assert alone.returncode == 0 and len(expected) == 3
    CONTAINERS["bomb.docx"](tmp_path / "2.docx")
    CONTAINERS["laughs.epub"](tmp_path / "4.epub")
    done, records = linked()
    assert records == expected
    for name in (b"2.docx", b"4.epub"):
        assert name in done.stderr


class Door(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        self.send_error(404)

    def log_message(self, *arguments):
        pass


def test_reading_calls_nobody(tmp_path):
    """No image, entity, style or frame is fetched unless asked for."""
    with HTTPServer(("127.0.0.1", 0), Door) as server:
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        door = f"http://127.0.0.1:{server.server_port}"
        entity = f"<!DOCTYPE a [<!ENTITY % b SYSTEM '{door}/dtd'> %b;]>"
        markup = (
            f"<base href='{door}/'><link rel=stylesheet href='{door}/css'><script src='{door}/js'>"
            f"</script><p>Text.</p><img src='{door}/a.png' srcset='{door}/b.png 2x'><iframe "
            f"src='{door}/frame'></iframe><object data='{door}/o'></object><video src='{door}/v'>"
        )
        (tmp_path / "a.html").write_text(entity + markup)
        (tmp_path / "a.md").write_text(f"Text ![a]({door}/a.png)\n\n{markup}")
        epub(tmp_path / "a.epub", {"a.xhtml": f"<p>Text.</p><img src='{door}/a.png'/>"})
        word_file(tmp_path / "a.docx", lambda _: f"{entity}<a/>".encode())
        read = 0
        for path in sorted(tmp_path.iterdir()):
            try:
                read += bool(read_article(path).document.sentences)
            except SightlineError:
                assert path.suffix == ".docx"
        assert (read, server.seen) == (3, [])
        # The control: the door is open.
        import urllib.error
        import urllib.request

        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{door}/knock")
        assert server.seen == ["/knock"]
        server.shutdown()


@pytest.mark.parametrize("kind", ["PNG", "GIF", "TIFF", "WEBP"])
def test_image_bombs_that_are_all_there_are_too_large(kind):
    """Small files that unpack to 60 megapixels, not only headers that say so."""
    stream = io.BytesIO()
    options = {"TIFF": {"compression": "tiff_lzw"}, "WEBP": {"lossless": True, "method": 0}}
    size = (12_000, 5_000) if kind != "GIF" else (30_000, 2_000)
    Image.new("L", size).save(stream, kind, **options.get(kind, {}))
    assert len(stream.getvalue()) < 600_000
    found = decode(stream.getvalue(), 256)
    assert (found.pixels, found.status) == (None, Status.too_large)


def loaded(name):
    specification = importlib.util.spec_from_file_location(name, CHECKS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_check_of_corpora_counts_and_its_control_fails(tmp_path):
    (tmp_path / "good.html").write_text("<p>Text.</p>")
    (tmp_path / "cases.dat").write_bytes(b"#data\n<p>One\n#errors\n\n#data\n<b>Two\n#errors\n")
    (tmp_path / "spec.json").write_text(json.dumps([{"markdown": "# Three"}]))
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    command = [sys.executable, str(CHECKS / "hostile_corpora.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    counts = "4 ok, 1 refused, 0 contained, 0 lost, 0 crash, 0 hang, 0 swollen"
    assert f"5 cases: {counts}" in done.stdout
    assert done.returncode == 0
    together = subprocess.run([*command, "--together"], capture_output=True, text=True)
    assert together.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    done = subprocess.run([*command, "--plant", "crash"], capture_output=True, text=True)
    assert "6 cases: 4 ok, 1 refused, 0 contained, 0 lost, 1 crash" in done.stdout
    assert done.returncode == 1


def test_the_licences_of_all_dependencies_are_agreed_to():
    licences = loaded("licences")
    packages = list(licences.dependencies())
    assert len(packages) > 50
    assert [f"{p.name}: {c}" for p in packages if (c := licences.complaint(p))] == []


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("License-Expression: AGPL-3.0-or-later", "AGPL"),
        ("License-Expression: MIT AND (GPL-2.0-only OR MIT)", "GPL-2.0-only"),
        ("Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)", "GPLv3"),
        ("License: LGPL", "LGPL"),
        ("License: Shareware", "Shareware"),
        ("Summary: no licence at all", "nothing"),
    ],
)
def test_the_check_of_licences_complains(tmp_path, field, words):
    """The control: licences that must not pass."""
    folder = tmp_path / "a-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: a\nVersion: 1\n{field}\n")
    from importlib.metadata import Distribution

    assert words in loaded("licences").complaint(Distribution.at(folder))


def test_every_dependency_that_make_installs_has_a_hash():
    """What the lock for development leaves out, pip would choose by itself."""
    folder = CHECKS.parent / "locks"
    locked = {name: (folder / f"{name}.txt").read_text() for name in ("core", "train", "dev")}
    pins = {}
    for name, text in locked.items():
        entries = text.replace(" \\\n", "").splitlines()[1:]
        assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
        pins[name] = {entry.split()[0] for entry in entries}
    assert len(pins["core"]) > 20
    assert pins["core"] <= pins["train"] <= pins["dev"]
    versions = dict(pin.split("==") for pin in pins["dev"])
    constrained = (CHECKS.parent / "constraints.txt").read_text().splitlines()[1:]
    from packaging.utils import canonicalize_name

    for line in constrained:
        name, _, version = line.partition("==")
        assert versions.get(canonicalize_name(name), version) == version, line
