"""Models of the Hugging Face hub: the card's header, and a hub in this process to fetch from."""

import hashlib
import os
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import orjson
import pytest
from service_helpers import tiny_model

from sightline import LinkModel, SightlineError
from sightline.clip_backbones import is_clip_folder
from sightline.hub import PATTERNS, model_folder, name_from_user
from sightline.installed_packages import install_command
from sightline.link_records import open_model
from sightline.model import BUNDLED, Member
from sightline.model_card import card_header

huggingface_hub = pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SCORES = {"val": {"documents": 10, "skipped": 0, "auc": 98.7654, "p@1": 91.0, "p@5": None}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder with a member, beside files that a repository may hold as well."""
    folder = tmp_path_factory.mktemp("repository")
    model = tiny_model()
    model = replace(model, notes={"corpus": "pets", "scores": SCORES})
    replace(model, members=(Member(replace(model, notes={}), 0.25),)).save_pretrained(folder)
    for name in ("pytorch_model.bin", "model.pkl", "setup.py", "member-1/weights.pickle"):
        (folder / name).write_bytes(b"not to be fetched")
    return folder


# ---- the card


def card_of(folder):
    return huggingface_hub.ModelCard.load(Path(folder) / "README.md")


def test_the_header_of_a_card_is_what_the_hub_reads(folder):
    data = card_of(folder).data
    assert data.library_name == "sightline"
    assert "sightline" in data.tags
    found = {(one.metric_type, one.metric_value) for one in data.eval_results}
    assert found == {("roc_auc", 98.77), ("precision", 91.0)}
    assert {one.dataset_name for one in data.eval_results} == {"pets: val"}
    text = (folder / "README.md").read_text()
    assert "| val | 10 | 98.8 | 91.0 | - |" in text


def test_the_bundled_card_has_a_header_that_says_what_was_measured():
    data = card_of(BUNDLED).data
    notes = LinkModel.from_pretrained("default").notes
    assert (data.library_name, data.license) == ("sightline", "apache-2.0")
    header = card_header({**notes, "license": "apache-2.0"})
    assert (BUNDLED / "README.md").read_text().startswith(header)
    assert len(data.eval_results) == 12


@pytest.mark.parametrize(
    "name",
    ["a: b", "- x", "---\nlicense: mit", "'\"{}[]#&*!|>%@`", "\u2028\ud800", "日本", None, 7],
)
def test_no_name_breaks_the_header(tmp_path, name):
    notes = {"corpus": name, "scores": {str(name): SCORES["val"], "odd": 3}, "license": name}
    text = card_header({key: value for key, value in notes.items() if value is not None})
    (tmp_path / "README.md").write_bytes(text.encode("utf-8", "replace"))
    data = card_of(tmp_path).data.to_dict()
    assert data["library_name"] == "sightline"
    assert len(data["model-index"][0]["results"]) == 1
    assert data.keys() <= {"library_name", "license", "tags", "model-index"}


def test_the_hub_knows_the_model_by_its_config(folder):
    config = orjson.loads((folder / "config.json").read_bytes())
    assert (config["model_type"], config["architectures"]) == ("sightline", ["LinkModel"])
    assert not is_clip_folder(folder)
    loaded = LinkModel.from_pretrained(str(folder))
    assert loaded.notes == {"corpus": "pets", "scores": SCORES}
    for key in ("model_type", "architectures"):
        del config[key]
    older = folder.parent / "older"
    replace(loaded, members=()).save_pretrained(older)
    config.pop("members")
    (older / "config.json").write_bytes(orjson.dumps(config))
    assert LinkModel.from_pretrained(older).notes == loaded.notes


# ---- names


def test_only_names_that_look_so_go_to_the_hub(tmp_path, monkeypatch):
    fetched = []
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        lambda name, **options: fetched.append((name, options["revision"])) or tmp_path,
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner/here").mkdir(parents=True)
    for name in (
        "owner/here",
        "name",
        "./owner/name",
        "a/b/c",
        "/owner/name",
        "owner/",
        Path("a/b"),
    ):
        assert model_folder(name) == Path(name)
    assert not fetched
    assert model_folder("owner/name") == tmp_path
    assert model_folder("hf://owner/name@v1.0", None) == tmp_path
    assert model_folder("hf://owner/here", "main") == tmp_path
    assert fetched == [("owner/name", None), ("owner/name", "v1.0"), ("owner/here", "main")]
    with pytest.raises(SightlineError, match="expected hf://owner/name"):
        model_folder("hf://name")
    with pytest.raises(SightlineError, match="a folder has no revision"):
        model_folder("owner/here", "main")
    # What a command names is fetched only if it says so.
    assert name_from_user("owner/name") == Path("owner/name")
    assert name_from_user("hf://owner/name") == "hf://owner/name"
    assert name_from_user("default") == "default"


def test_a_command_tells_how_to_fetch_what_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SightlineError, match=r"write hf://owner/name; .*'hf download owner/name "):
        open_model("owner/name")
    for name in ("a/b/c", "/owner/name", "models"):
        with pytest.raises(SightlineError, match="is not a model folder; train one") as refused:
            open_model(name)
        assert "hf" not in str(refused.value)


# ---- fetching


class Hub(BaseHTTPRequestHandler):
    """The few answers of the hub that fetching a snapshot needs."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.server.seen.append(f"{self.command} {path}")
        root = self.server.folder
        if path.startswith("/api/models/owner/name/revision/"):
            if path.rpartition("/")[2] not in ("main", "v1", COMMIT):
                return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
            files = [str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()]
            siblings = [{"rfilename": name} for name in files]
            info = {"id": "owner/name", "sha": COMMIT, "siblings": siblings, "private": False,
                    "downloads": 0, "likes": 0, "tags": []}  # fmt: skip
            return self.json(info)
        if path == f"/api/models/owner/name/tree/{COMMIT}":
            return self.json(
                [
                    {"type": "file", "path": str(file.relative_to(root)), "oid": digest(file),
                     "size": file.stat().st_size}
                    for file in sorted(root.rglob("*")) if file.is_file()
                ]
            )  # fmt: skip
        prefix = f"/owner/name/resolve/{COMMIT}/"
        if path.startswith(prefix) and (root / path.removeprefix(prefix)).is_file():
            file = root / path.removeprefix(prefix)
            return self.answer(
                200, file.read_bytes(), {"X-Repo-Commit": COMMIT, "ETag": f'"{digest(file)}"'}
            )
        code = "GatedRepo" if "gated" in path else "RepoNotFound"
        return self.answer(403 if "gated" in path else 404, b"", {"X-Error-Code": code})

    def json(self, value):
        self.answer(200, orjson.dumps(value), {"Content-Type": "application/json"})

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def digest(file):
    return hashlib.sha1(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def hub(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.folder, server.seen = folder, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("hf")


#: Loads each model that is named, prints what it is or why it cannot be had.
PROGRAM = """
import sys
from sightline import LinkModel, SightlineError
for name in sys.argv[1:]:
    try:
        model = LinkModel.from_pretrained(name)
        print(name, model.notes["corpus"], len(model.members))
    except SightlineError as error:
        print(name, error)
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""


def load(home, endpoint, *names, **environment):
    variables = {
        "HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "*",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        capture_output=True, text=True, cwd=home,
        env={**os.environ, **variables, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_model_is_fetched_and_nothing_but_it(hub, home, folder):
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    answers = load(home, endpoint, "owner/name", "owner/name@v1", f"hf://owner/name@{COMMIT}",
                   "owner/name@v2", "owner/nothing", "owner/gated", "owner/na--me")  # fmt: skip
    assert answers[:3] == [
        "owner/name pets 1", "owner/name@v1 pets 1", f"hf://owner/name@{COMMIT} pets 1",
    ]  # fmt: skip
    assert "has no revision v2" in answers[3]
    assert "is not a model folder here, and the Hugging Face hub has none" in answers[4]
    assert "hf auth login" in answers[5]
    assert "cannot be fetched" in answers[6]
    parts = ("README.md", "config.json", "model.safetensors", "vocabulary.json")
    wanted = {f"{member}{name}" for member in ("", "member-1/") for name in parts}
    asked = {one.partition(f"/resolve/{COMMIT}/")[2] for one in hub.seen if "/resolve/" in one}
    assert asked <= wanted  # of equal files, one is enough
    assert {*parts, "member-1/config.json"} <= asked
    assert len(PATTERNS) == 12


def test_what_was_fetched_is_there_without_the_hub(hub, home):
    """Runs after the one above, whose cache it uses; nothing answers at the address."""
    nowhere = "http://127.0.0.1:9"
    before = len(hub.seen)
    answers = load(home, nowhere, "owner/name", "owner/other", HF_HUB_OFFLINE="1")
    assert answers[0] == "owner/name pets 1"
    assert "the Hugging Face hub cannot be reached; owner/other was never fetched" in answers[1]
    assert len(hub.seen) == before


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from sightline import LinkModel\nLinkModel.from_pretrained('owner/name')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "owner/name is not a model folder here" in done.stderr
    assert install_command("hub") in done.stderr


@pytest.mark.parametrize("name", ["defualt", Path("Default"), "deafult"])
def test_a_slip_of_the_pen_is_told(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SightlineError, match=r"There is no model '\w+'. Did you mean 'default'\?"):
        model_folder(name)
    (tmp_path / name).mkdir()
    assert model_folder(name) == Path(name)
