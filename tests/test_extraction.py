"""From image files to a feature store: right rows, whatever is broken and whenever it is killed."""

import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from PIL import Image

from sightline import feature_journal
from sightline.backbone_names import open_backbone
from sightline.backbones import Backbone, BackboneError, Preprocessing, load_backbone
from sightline.corpus import read
from sightline.extraction import extract_features
from sightline.features import FeatureError, FeatureStore, write_feature_store
from sightline.images import decode
from sightline.problems import ProblemError, Problems, SightlineError

unix = pytest.mark.skipif(sys.platform == "win32", reason="kills and locks as Unix does")


@dataclass
class TinyNetwork:
    """Coarse colours as features: enough to tell images apart, and it can be slow or be stopped."""

    seconds: float = 0.0
    stop_after: int = 10**9
    batches: list[int] = field(default_factory=list)

    def features(self, batch):
        if len(self.batches) >= self.stop_after:
            raise KeyboardInterrupt
        self.batches.append(len(batch))
        time.sleep(self.seconds)
        return batch.reshape(len(batch), 3, 4, 8, 4, 8).mean((3, 5)).reshape(len(batch), 48)


def tiny_backbone(**options):
    way = Preprocessing(36, 32, "bicubic", (127, 127, 127), (128, 128, 128))
    return Backbone("tiny", 48, way, "0" * 64, TinyNetwork(**options))


@pytest.fixture(scope="module")
def lite0():
    return load_backbone(threads=1)


def picture(seed, size=(60, 50), kind="PNG", mode="RGB"):
    """The bytes of an image file with large patches of random colours."""
    patches = np.random.default_rng(seed).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC).convert(mode).save(stream, kind)
    return stream.getvalue()


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def statuses(folder):
    return [orjson.loads(line) for line in (folder / "statuses.jsonl").read_bytes().splitlines()]


def direct(backbone, path):
    pixels = decode(path, backbone.preprocessing.shorter_side).pixels
    return backbone.features(backbone.preprocess(pixels)[None])[0].astype(np.float16)


def assert_rows(folder, backbone, files):
    """Each image, found by the name its document gives it, has the features of its own file."""
    store = FeatureStore.open(folder)
    for image, path in files.items():
        row = store.find(image)
        assert row is not None, image
        np.testing.assert_array_equal(store.matrix[row], direct(backbone, path), image)
    assert files
    return store


@pytest.fixture
def images(tmp_path):
    """Twenty images, of which two are broken; contents 3 and 7 are the same."""
    files = {f"{n:02}.png": picture(n) for n in range(20)}
    files["07.png"] = files["03.png"]
    files["05.png"] = files["05.png"][:60]
    files["11.png"] = b"not an image"
    return write(tmp_path / "images", files)


# ---- what is computed


def test_features_are_those_of_the_backbone(lite0, tmp_path):
    files = {
        "photo.jpg": picture(1, (900, 700), "JPEG"),
        "small.jpg": picture(2, (90, 70), "JPEG"),
        "grey.png": picture(3, (300, 256), "PNG", "L"),
        "palette.gif": picture(4, (400, 300), "GIF", "P"),
        "sub/wide.webp": picture(5, (1200, 260), "WEBP"),
    }
    write(tmp_path / "images", files)
    summary = extract_features([tmp_path / "images"], tmp_path / "s", lite0, workers=1, batch=2)
    paths = {name: tmp_path / "images" / name for name in files}
    store = assert_rows(tmp_path / "s", lite0, paths)
    assert store.matrix.dtype == np.float16 and store.matrix.shape == (5, 1280)
    assert store.manifest == {**lite0.manifest(), "rows": 5, "dimension": 1280}
    # In order of appearance; a folder is read by name.
    assert store.id2row == {"grey": 0, "palette": 1, "photo": 2, "small": 3, "wide": 4}
    assert (summary.images, summary.computed, summary.usable) == (5, 5, 5)
    assert sorted(contents(tmp_path / "s")) == [
        "contents.sha256", "efficientnet-lite0.npy", "id2row.json", "manifest.json",
        "statuses.jsonl",
    ]  # fmt: skip


def test_given_features_of_coco(lite0, shared_data, tmp_path):
    """The given features are of less compressed files: their cosines are about 0.992."""
    files = sorted((shared_data / "coco" / "images").glob("*.jpg"))[::90][:20]
    assert len(files) == 20
    extract_features(files, tmp_path, lite0)
    ours, given = FeatureStore.open(tmp_path), FeatureStore.open(shared_data / "coco" / "features")
    a, b = (s.vectors(s.rows([file.name for file in files])) for s in (ours, given))
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    # One of them has 0.977; `test_given_features` has the same bound, and the reason.
    assert cosines.min() > 0.975
    assert np.sort(cosines)[1] > 0.98
    assert cosines.mean() > 0.99


def test_a_corpus_names_images_relative_to_itself(tmp_path):
    write(tmp_path, {"images/a.png": picture(1), "b.jpg": picture(2, kind="JPEG")})
    records = [
        {"id": "1", "sentences": ["x"], "images": ["b.jpg", "images/a.png"]},
        {"id": "2", "sentences": [], "images": ["images/a.png", "images/none.png"]},
    ]
    write(tmp_path, {"documents.jsonl": b"\n".join(map(orjson.dumps, records))})
    backbone = tiny_backbone()
    summary = extract_features([tmp_path], tmp_path / "features", backbone, workers=0)
    paths = {"images/a.png": tmp_path / "images/a.png", "b.jpg": tmp_path / "b.jpg"}
    store = assert_rows(tmp_path / "features", backbone, paths)
    assert store.id2row == {"b": 0, "a": 1}
    assert (summary.images, summary.failed) == (3, {"missing": 1})
    # The same from an open corpus, and from the files themselves.
    extract_features([read(tmp_path, allow_empty=True)], tmp_path / "2", backbone, workers=0)
    extract_features([*paths.values()][::-1], tmp_path / "3", backbone, workers=0)
    assert contents(tmp_path / "features") == contents(tmp_path / "2")
    assert FeatureStore.open(tmp_path / "3").id2row == store.id2row


def test_neither_workers_nor_batches_change_a_byte(images, tmp_path):
    for number, options in enumerate([{"workers": 0}, {"workers": 2}, {"workers": 0, "batch": 3}]):
        network = tiny_backbone()
        extract_features([images], tmp_path / str(number), network, **options)
        assert max(network.network.batches) == options.get("batch", 8)
        assert contents(tmp_path / str(number)) == contents(tmp_path / "0")


# ---- what is broken


def test_a_broken_image_gets_a_status_and_shifts_no_other(tmp_path):
    files = {f"{n}.png": picture(int(n)) for n in "1357"}
    files |= {"2.png": b"", "4.jpg": picture(4, kind="JPEG")[:300], "6.png": b"<svg/>"}
    folder = write(tmp_path / "images", files)
    (folder / "8.png").mkdir()
    (folder / "9.png").symlink_to("nowhere")
    os.mkfifo(folder / "0.png")  # opening it would block for ever
    problems = Problems()
    backbone = tiny_backbone()
    summary = extract_features([folder], tmp_path / "s", backbone, workers=1, problems=problems)
    good = {f"{n}.png": folder / f"{n}.png" for n in "1357"}
    assert set(assert_rows(tmp_path / "s", backbone, good).id2row) == set("1357")
    found = statuses(tmp_path / "s")
    assert [(status["id"], status["image"], status["status"]) for status in found] == [
        ("0", "0.png", "missing"),
        ("2", "2.png", "undecodable"),
        ("4", "4.jpg", "undecodable"),
        ("6", "6.png", "unsupported"),
        ("8", "8.png", "missing"),
        ("9", "9.png", "missing"),
    ]
    assert all(status["reason"].endswith(".") for status in found)
    assert summary.failed == {"missing": 3, "undecodable": 2, "unsupported": 1}
    assert (summary.images, summary.usable, problems.count) == (10, 4, 6)
    assert "4 of 10 images" in str(summary) and "3 missing" in str(summary)


def test_strict_stops_at_the_first_broken_image(images, tmp_path):
    strict = Problems(strict=True)
    with pytest.raises(ProblemError, match=r"05\.png: undecodable: "):
        extract_features([images], tmp_path / "s", tiny_backbone(), workers=0, problems=strict)


def test_equal_contents_are_computed_once_and_share_a_row(images, tmp_path):
    write(images, {"copy/11.png": b"not an image", "copy/20.png": picture(0)})
    network = tiny_backbone(seconds=0.01)
    summary = extract_features([images], tmp_path / "s", network, workers=0)
    store = FeatureStore.open(tmp_path / "s")
    assert store.find("03") == store.find("07") and store.find("00") == store.find("20")
    assert sum(network.network.batches) == len(store) == 17
    assert (summary.images, summary.computed, summary.duplicates) == (22, 17, 2)
    # The broken one as well: both have the same status.
    assert [status["image"] for status in statuses(tmp_path / "s")] == [
        "05.png", "11.png", "copy/11.png",
    ]  # fmt: skip


def test_two_images_of_one_id_are_reported_and_never_mixed_up(tmp_path):
    files = {"a/x.png": picture(1), "b/x.png": picture(2), "c/x.png": picture(1)}
    files |= {"d/x.png": b"broken", "y": picture(3), "e/y.png": picture(4)}
    folder = write(tmp_path / "images", files)
    record = {"id": "1", "sentences": ["s"], "images": list(files)}
    write(folder, {"documents.jsonl": orjson.dumps(record)})
    backbone, problems = tiny_backbone(), Problems()
    extract_features([folder], tmp_path / "s", backbone, workers=0, problems=problems)
    readable = {name: folder / name for name in files if name != "d/x.png"}
    store = assert_rows(tmp_path / "s", backbone, readable)
    assert store.id2row == {"x": 0, "b/x.png": 1, "y": 2, "e/y.png": 3}
    said = [str(problem) for problem in problems.first]
    assert len(said) == 3
    assert said[0].endswith(
        "another image already has the id 'x'; it is stored as 'b/x.png' instead"
    )
    assert "e/y.png" in said[1] and "d/x.png" in said[2]
    assert "Another image has its id 'x'" in statuses(tmp_path / "s")[0]["reason"]


def test_nothing_usable_leaves_statuses_and_no_store(tmp_path):
    folder = write(tmp_path / "images", {"1.png": b"1", "2.png": b"2"})
    summary = extract_features([folder], tmp_path / "s", tiny_backbone(), workers=0)
    assert (summary.usable, summary.failed) == (0, {"undecodable": 2})
    assert [*contents(tmp_path / "s")] == ["statuses.jsonl"]
    # Later there is something.
    write(folder, {"1.png": picture(1)})
    assert extract_features([folder], tmp_path / "s", tiny_backbone(), workers=0).usable == 1
    assert [status["id"] for status in statuses(tmp_path / "s")] == ["2"]


def test_a_backbone_that_gives_no_numbers_is_refused(images, tmp_path):
    class Broken(TinyNetwork):
        def features(self, batch):
            return super().features(batch) * np.float32(1e9)

    backbone = replace(tiny_backbone(), network=Broken())
    with pytest.raises(FeatureError, match="too large for float16"):
        extract_features([images], tmp_path / "s", backbone, workers=0)


# ---- a store that grows


def test_only_what_is_missing_is_added(images, tmp_path):
    backbone = tiny_backbone()
    first = extract_features([images], tmp_path / "s", backbone, workers=0)
    before, matrix = contents(tmp_path / "s"), FeatureStore.open(tmp_path / "s").matrix
    files = {file.name: file.stat().st_ino for file in (tmp_path / "s").iterdir()}
    again = tiny_backbone()
    second = extract_features([images], tmp_path / "s", again, workers=0)
    assert again.network.batches == []
    assert (second.computed, second.known) == (0, first.usable)
    assert contents(tmp_path / "s") == before
    assert files["tiny.npy"] == (tmp_path / "s" / "tiny.npy").stat().st_ino
    # Two new ones, one of them of a known content; a broken one is whole now.
    more = {"20.png": picture(20), "21.png": picture(4), "11.png": picture(11)}
    write(images, more)
    third = extract_features([images], tmp_path / "s", again, workers=0)
    assert again.network.batches == [2]
    assert (third.computed, third.known, third.failed) == (2, 19, {"undecodable": 1})
    good = {f"{n:02}.png": images / f"{n:02}.png" for n in range(22) if n != 5}
    store = assert_rows(tmp_path / "s", backbone, good)
    np.testing.assert_array_equal(store.matrix[: len(matrix)], matrix)
    # Other images of another folder: the statuses of the first stay.
    write(tmp_path / "other", {"30.png": picture(30), "31.png": b"broken"})
    extract_features([tmp_path / "other"], tmp_path / "s", backbone, workers=0)
    assert [status["id"] for status in statuses(tmp_path / "s")] == ["05", "31"]
    assert len(FeatureStore.open(tmp_path / "s")) == len(store) + 1


def test_another_file_of_a_known_id_is_noticed_when_it_is_added(images, tmp_path):
    backbone, problems = tiny_backbone(), Problems()
    extract_features([images], tmp_path / "s", backbone, workers=0)
    other = write(tmp_path / "other", {"sub/01.png": picture(99), "02.png": picture(2)})
    extract_features([other], tmp_path / "s", backbone, workers=0, problems=problems)
    assert [problem.file for problem in problems.first] == [str(other / "sub" / "01.png")]
    paths = {"sub/01.png": other / "sub/01.png", "01.png": images / "01.png"}
    assert_rows(tmp_path / "s", backbone, paths)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "tiny2"},
        {"weights_sha256": "1" * 64},
        {"preprocessing": replace(tiny_backbone().preprocessing, shorter_side=40)},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("stopped", [False, True], ids=["finished", "stopped"])
def test_features_of_another_backbone_are_refused(images, tmp_path, change, stopped):
    backbone = tiny_backbone(stop_after=1 if stopped else 100)
    try:
        extract_features([images], tmp_path / "s", backbone, workers=0)
    except KeyboardInterrupt:
        assert stopped
    before = contents(tmp_path / "s")
    assert ("journal.jsonl" in before) == stopped
    with pytest.raises(FeatureError, match="a store holds one kind, so choose another folder"):
        extract_features([images], tmp_path / "s", replace(tiny_backbone(), **change), workers=0)
    assert contents(tmp_path / "s") == before


def test_a_store_made_elsewhere_is_refused(images, tmp_path):
    rows = np.zeros((1, 48), np.float16)
    write_feature_store(tmp_path, "tiny", ["01"], rows, tiny_backbone().manifest())
    with pytest.raises(FeatureError, match="nothing can be added to"):
        extract_features([images], tmp_path, tiny_backbone(), workers=0)
    assert FeatureStore.open(tmp_path).id2row == {"01": 0}


# ---- runs that are cut off


def test_an_interrupted_run_goes_on_where_it_stopped(images, tmp_path):
    extract_features([images], tmp_path / "whole", tiny_backbone(), workers=0, batch=4)
    interrupted = tiny_backbone(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        extract_features([images], tmp_path / "s", interrupted, workers=0, batch=4)
    with pytest.raises(FeatureError, match=r"no \.npy file"):
        FeatureStore.open(tmp_path / "s")
    rest = tiny_backbone()
    summary = extract_features([images], tmp_path / "s", rest, workers=0, batch=4)
    assert (rest.network.batches, summary.known, summary.usable) == ([4, 4, 1], 9, 18)
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


SLOWLY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_extraction import tiny_backbone
from sightline import feature_journal
from sightline.extraction import extract_features
feature_journal._COMMIT_SECONDS = 0
extract_features([Path(sys.argv[2])], Path(sys.argv[3]), tiny_backbone(seconds=0.3), batch=3)
"""


@unix
def test_a_run_killed_in_its_middle_goes_on_and_gives_the_same_bytes(images, tmp_path):
    extract_features([images], tmp_path / "whole", tiny_backbone(), workers=0, batch=3)
    arguments = [Path(__file__).parent, images, tmp_path / "s"]
    run = subprocess.Popen([sys.executable, "-c", SLOWLY, *map(str, arguments)])
    journal = tmp_path / "s" / "journal.jsonl"
    end = time.monotonic() + 30
    while not journal.exists() or journal.read_bytes().count(b"\n") < 7:
        assert run.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    run.kill()
    assert run.wait() == -signal.SIGKILL
    # Killed while writing: half a line, and rows that no line vouches for.
    with journal.open("ab") as file:
        file.write(b'{"sha256":"12')
    with (tmp_path / "s" / "tiny.npy.partial").open("ab") as file:
        file.write(bytes(1000))
    rest = tiny_backbone()
    summary = extract_features([images], tmp_path / "s", rest, workers=0, batch=3)
    assert 6 <= summary.known < 18 and sum(rest.network.batches) == summary.computed > 0
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


AT_EVERY_STEP = """
import os, shutil, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_extraction import tiny_backbone
from sightline.extraction import extract_features
images, stores, old = map(Path, sys.argv[2:])
replace, unlink = Path.replace, Path.unlink
steps = 0
def step(name, change):
    global steps
    if steps == wanted:
        print(name, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1
    return change()
Path.replace = lambda self, to: step(Path(to).name, lambda: replace(self, to))
Path.unlink = lambda self, missing_ok=False: (
    unlink(self, missing_ok=True) if missing_ok else step(self.name, lambda: unlink(self)))
for wanted in range(100):
    shutil.copytree(old, stores / str(wanted))
    child = os.fork()
    if not child:
        extract_features([images], stores / str(wanted), tiny_backbone(), workers=0)
        os._exit(0)
    if not os.waitpid(child, 0)[1]:
        break
"""


@unix
@pytest.mark.parametrize("new", [True, False], ids=["new", "grown"])
def test_a_run_killed_at_any_step_of_its_end_goes_on(images, tmp_path, new):
    old = tmp_path / "old"
    old.mkdir()
    if not new:
        some = sorted(images.iterdir())[8:14]
        extract_features(some, old, tiny_backbone(), workers=0)
    shutil.copytree(old, tmp_path / "whole")
    extract_features([images], tmp_path / "whole", tiny_backbone(), workers=0)
    arguments = [Path(__file__).parent, images, tmp_path / "stores", old]
    (tmp_path / "stores").mkdir()
    run = [sys.executable, "-W", "error", "-c", AT_EVERY_STEP, *map(str, arguments)]
    killed = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    assert killed == [
        "statuses.jsonl", "contents.sha256", "tiny.npy", "manifest.json", "id2row.json",
        "journal.jsonl", "tiny.npy.partial",
    ]  # fmt: skip
    whole = FeatureStore.open(tmp_path / "whole")
    opened = 0
    for number in range(len(killed) + 1):
        folder = tmp_path / "stores" / str(number)
        try:
            store = FeatureStore.open(folder)
        except FeatureError:
            pass
        else:
            opened += 1
            for image, row in store.id2row.items():
                np.testing.assert_array_equal(store.matrix[row], whole.matrix[whole.find(image)])
        rest = tiny_backbone()
        extract_features([images], folder, rest, workers=0)
        assert rest.network.batches == []
        assert contents(folder) == contents(tmp_path / "whole")
    # A new store opens once its ids are there; a grown one does but between two of the steps.
    assert opened == (3 if new else 7)


@unix
def test_two_runs_do_not_write_at_once(images, tmp_path):
    with (
        feature_journal.FeatureJournal(tmp_path / "s", tiny_backbone()),
        pytest.raises(FeatureError, match="Another run is writing"),
    ):
        extract_features([images], tmp_path / "s", tiny_backbone(), workers=0)
    assert extract_features([images], tmp_path / "s", tiny_backbone(), workers=0).usable == 18


def test_a_damaged_journal_is_refused_with_advice(images, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        extract_features([images], tmp_path / "s", tiny_backbone(stop_after=1), workers=0)
    (tmp_path / "s" / "tiny.npy.partial").write_bytes(b"")
    with pytest.raises(FeatureError, match=r"damaged .*delete it"):
        extract_features([images], tmp_path / "s", tiny_backbone(), workers=0)
    (tmp_path / "s" / "journal.jsonl").unlink()
    assert extract_features([images], tmp_path / "s", tiny_backbone(), workers=0).usable == 18


# ---- names of backbones, and the command


def test_names_of_backbones(tmp_path):
    assert open_backbone(threads=1).name == "efficientnet-lite0"
    with pytest.raises(BackboneError, match=r"known are efficientnet-lite0, .*nasnet-mobile"):
        open_backbone("resnet")
    with pytest.raises(BackboneError, match="densenet169 needs a weight file"):
        open_backbone("densenet169")
    with pytest.raises(SightlineError, match=r"none\.safetensors cannot be read"):
        open_backbone("nasnet-mobile", tmp_path / "none.safetensors")


def sightline(*arguments, expect=0, **options):
    command = [sys.executable, "-m", "sightline", "features", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert "Traceback" not in done.stderr
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


def test_the_command(images, tmp_path, lite0):
    out, words = sightline(images, "-o", tmp_path / "s", "--json")
    assert orjson.loads(out) == {
        "backbone": "efficientnet-lite0", "dimension": 1280, "rows": 17, "images": 20,
        "computed": 17, "known": 0, "duplicates": 1, "failed": {"undecodable": 2},
    }  # fmt: skip
    assert "18 of 20 images have features" in words and "05.png: undecodable" in words
    paths = {f"{n:02}.png": images / f"{n:02}.png" for n in range(20) if n not in (5, 11)}
    assert_rows(tmp_path / "s", lite0, paths)
    out, words = sightline(images, "-o", tmp_path / "s", "--workers", 0)
    assert out == "" and "0 computed, 18 there before" in words


def test_a_folder_in_a_file_is_told(images, tmp_path):
    (tmp_path / "a.jsonl").write_text("{}")
    _, words = sightline(images, "-o", tmp_path / "a.jsonl" / "features", expect=1)
    assert f"{tmp_path / 'a.jsonl'} is a file; name a folder beside it" in words


@unix
def test_the_command_on_a_full_disk(images, tmp_path):
    """As a limit on the size of files, which fails in the same place in the same way."""
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))}
    options = ["-o", tmp_path / "s", "--workers", 0, "--batch", 4]
    _, words = sightline(images, *options, expect=1, **small)
    assert "features cannot be written there: File too large" in words
    _, words = sightline(images, *options)
    assert "18 of 20 images" in words and "there before" in words


def test_the_command_refuses_what_it_cannot_use(tmp_path):
    bad = write(tmp_path / "bad", {"1.png": b"1"})
    _, words = sightline(bad, "-o", tmp_path / "s", "--workers", 0, expect=1)
    assert "No image could be used" in words and "statuses.jsonl says why" in words
    empty = tmp_path / "empty"
    empty.mkdir()
    words = sightline(empty, "-o", tmp_path / "s", expect=1)[1]
    assert "no documents in this folder" in words and "There is no image either." in words
    words = sightline(bad, "-o", bad / "1.png", "--workers", 0, expect=2)[1]
    assert "is a file; a feature store is a folder" in words
    assert "--batch" in sightline(bad, "-o", tmp_path / "s", "--batch", 0, expect=2)[1]
