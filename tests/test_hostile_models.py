"""A model folder, a feature store and word vectors are data: they are loaded or refused.

All hostile files are opened in one child process that forks for each of them, within 300 MB, so
that what a file costs is measured and cannot harm the tests.
"""

import io
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile

import numpy as np
import orjson
import pytest

from sightline.model import LinkModel
from sightline.model_files import expected_shapes, vocabulary_hash, weights_bytes
from sightline.onnx_files import Graph
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")

SECONDS, MEGABYTES = 2.0, 300
MIB = 2**20

CHILD = """
import os, resource, signal, sys
from pathlib import Path
import numpy as np, orjson
import onnxruntime, safetensors.numpy
from sightline.documents import Document
from sightline.features import FeatureStore
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.word_vectors import read_word_vectors

def model(path):
    found = LinkModel.from_pretrained(path)
    if found.tuned:
        found.image_backbone
    document = Document("d", ("a fish", "a bird"), ("i", "j"))
    features = np.ones((2, found.feature_dimension), np.float32)
    return len(found.link(document, features=features))

def features(path):
    store = FeatureStore.open(path)
    return store.vectors(range(len(store))).shape[0]

def word_vectors(path):
    return len(read_word_vectors(path, None, Problems()).words)

def swell(path):
    return len(bytearray(400 * 2**20))

def attempt(kind, path):
    try:
        return {"outcome": "loaded", "said": str(globals()[kind](Path(path)))}
    except SightlineError as error:
        return {"outcome": "refused", "said": str(error)}
    except BaseException as error:
        return {"outcome": type(error).__name__, "said": str(error)[:500]}

def memory():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

for line in sys.stdin:
    name, kind, path = orjson.loads(line)
    reading, writing = os.pipe()
    if not os.fork():
        most = memory() + int(sys.argv[1]) * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        signal.alarm(10)  # ends the process
        before = resource.getrusage(resource.RUSAGE_SELF)
        said = attempt(kind, path)
        after = resource.getrusage(resource.RUSAGE_SELF)
        # Of the processor: a busy machine makes no file hostile.
        said["seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        said["megabytes"] = (after.ru_maxrss - before.ru_maxrss) / 1024
        os.write(writing, orjson.dumps(said))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    os.wait()
    said = orjson.loads(said) if said else {"outcome": "died", "said": ""}
    sys.stdout.buffer.write(orjson.dumps([name, said]) + b"\\n")
"""


class Canary:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def small_model(**changes):
    settings = Settings(dimension=4, word_dimension=3, token_limit=5, **changes)
    vocabulary = Vocabulary(["<unk>", "a", "fish", "bird"])
    rng = np.random.default_rng(0)
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in expected_shapes(settings, len(vocabulary), 6).items()
    }
    return LinkModel(settings, vocabulary, weights, backbone="efficientnet-lite0")


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else orjson.dumps(header)
    return struct.pack("<Q", len(text)) + text + data


def tensor(shape, begin, end, dtype="F32"):
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}


def npy(descr, shape, data=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue() + data


def object_npy(canary):
    file = io.BytesIO()
    np.save(file, np.array([[Canary(canary)]], object), allow_pickle=True)
    return file.getvalue()


def npz(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def nested(depth):
    return b"[" * depth + b"]" * depth


def with_config(folder, **changes):
    config = orjson.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_bytes(orjson.dumps({**config, **changes}))


def with_setting(folder, **changes):
    config = orjson.loads((folder / "config.json").read_bytes())
    with_config(folder, settings={**config["settings"], **changes})


def replaced(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def raw_config(value):
    """Put a value into config.json that no JSON library would write."""

    def change(folder):
        with_config(folder, feature_dimension="HERE")
        file = folder / "config.json"
        file.write_bytes(file.read_bytes().replace(b'"HERE"', value))

    return change


def weights_changed(change):
    """Other weights, or metadata, of a model that fits otherwise."""

    def changed(folder):
        model = small_model()
        weights = dict(model.weights)
        metadata = {"vocabulary_sha256": vocabulary_hash(model.vocabulary)}
        weights, metadata = change(weights, metadata)
        (folder / "model.safetensors").write_bytes(weights_bytes(weights, metadata))

    return changed


def filled(weights, value, dtype=np.float32):
    return {name: np.full(weight.shape, value, dtype) for name, weight in weights.items()}


def sparse(size):
    def change(folder):
        header = orjson.dumps(tensor([size // 4], 0, size))
        with (folder / "model.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + size)

    return change


def linked(name, target):
    def change(folder):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def pipe(name):
    def change(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def cycle(folder):
    """A member that is the folder itself, eight times."""
    for number in range(1, 9):
        (folder / f"member-{number}").symlink_to(".")
    with_config(folder, members={f"member-{number}": 0.1 for number in range(1, 9)})


def tuned(data, name=None):
    """A model with an image network of its own, whose hash is right."""

    def change(folder):
        from dataclasses import replace

        from sightline.tuned_backbones import TunedBackbone

        model = small_model(finetune_images=True)
        replace(model, tuned=TunedBackbone(name or "efficientnet-lite0", data)).save_pretrained(
            folder
        )

    return change


def bad_graph():
    graph = Graph("g")
    graph.output(graph.node("Relu", [graph.input("other", ["n", 3])], "y"), ["n", 3])
    return graph.to_bytes({})


def large_constant():
    """A graph whose constant is folded to 100 GB when it is opened."""
    graph = Graph("g")
    size = graph.constant("size", np.array([25_000_000_000], np.int64))
    graph.output(graph.node("ConstantOfShape", [size], "features"), ["n"])
    graph.input("image", ["n", 3, 224, 224])
    return graph.to_bytes({})


def model_attacks(canary):
    """What is done to a good model folder, by name; the file that the refusal has to name."""
    pickled = pickle.dumps(Canary(canary))
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    attacks = {f"pickle as {name}": (name, replaced(name, pickled)) for name in (
        "config.json", "vocabulary.json", "model.safetensors")}  # fmt: skip
    weights = {
        "zip with a pickle": npz(data=pickled),
        "offsets beyond the file": safetensors(tensor([1000], 0, 4000), b"\0" * 8),
        "offsets that go backwards": safetensors(tensor([2], 8, 0), b"\0" * 8),
        "negative offsets": safetensors(tensor([2], -8, 0), b"\0" * 8),
        "overlapping tensors": safetensors(
            {**tensor([2], 0, 8), "v": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}},
            b"\0" * 12,
        ),
        "bytes that belong to no tensor": safetensors(tensor([2], 0, 8), b"\0" * 800),
        "header of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
        "header of 100 MB promised": struct.pack("<Q", 10**8) + b"{}",
        "header of 17 MB": safetensors(b"{" + b" " * 17 * MIB + b"}"),
        "header of deep nesting": safetensors(nested(100_000)),
        "header that is no object": safetensors(b"[1]"),
        "header that is no UTF-8": safetensors(b'{"\xff": 1}'),
        "more bytes than the type": safetensors(tensor([2], 0, 8, "F16"), b"\0" * 8),
        "a type that does not exist": safetensors(tensor([2], 0, 8, "OBJECT"), b"\0" * 8),
        "a type that numpy has not": safetensors(tensor([8], 0, 8, "F8_E4M3"), b"\0" * 8),
        "a shape that overflows": safetensors(tensor([2**33, 2**33], 0, 8), b"\0" * 8),
        "a shape of zeros and 2^62": safetensors(tensor([0, 2**62], 0, 0)),
        "100 GB promised": safetensors(tensor([25 * 10**9], 0, 10**11), b"\0" * 8),
        "30,000 empty tensors": safetensors({f"t{n}": empty for n in range(30_000)}),
        "150,000 empty tensors": safetensors({f"t{n}": empty for n in range(150_000)}),
        "nothing": b"",
    }
    attacks |= {
        name: ("model.safetensors", replaced("model.safetensors", data))
        for name, data in weights.items()
    }
    file = "model.safetensors"
    attacks |= {
        "100 GB that are there": (file, sparse(10**11)),
        "1 GB that is there": (file, sparse(10**9)),
        "NaN weights": (file, weights_changed(lambda w, m: (filled(w, np.nan), m))),
        "float64 infinity": (file, weights_changed(lambda w, m: (filled(w, 1e300, "f8"), m))),
        "boolean weights": (file, weights_changed(lambda w, m: (filled(w, 1, bool), m))),
        "metadata that is a list": (file, weights_changed(lambda w, m: (w, ["x"]))),
        "weights without end": (file, linked(file, "/dev/zero")),
        "weights from a pipe": (file, pipe(file)),
        "a tuned backbone that is not named": (
            file,
            lambda folder: with_setting(folder, finetune_images=True),
        ),
    }
    for number, place in enumerate(("../../secret", "/etc/passwd", "backbone-/../x.onnx", 7)):
        change = weights_changed(lambda w, m, p=place: (w, {**m, "backbone_file": p}))
        attacks[f"backbone elsewhere {number}"] = (
            file,
            lambda folder, c=change: (with_setting(folder, finetune_images=True), c(folder)),
        )
    file = "config.json"
    attacks |= {
        "config without end": (file, linked(file, "/dev/zero")),
        "config that is a folder": (
            file,
            lambda folder: ((folder / "config.json").unlink(), (folder / "config.json").mkdir()),
        ),
        "config from a pipe": (file, pipe(file)),
        "config of depth 100,000": (file, replaced(file, nested(100_000))),
        "a dimension of depth 1,000": (file, raw_config(nested(1000))),
        "a number of 50 MB": (file, raw_config(b"1" * 50_000_000)),
        "a number of 500 kB": (file, raw_config(b"1" * 500_000)),
        "a string of 50 MB": (file, raw_config(b'"' + b"x" * 50_000_000 + b'"')),
        "a string of 500 kB": (file, raw_config(b'"' + b"x" * 500_000 + b'"')),
        "a dimension of 10^308": (file, raw_config(b"1e308")),
        "a dimension that is NaN": (file, raw_config(b"NaN")),
        "a lone surrogate": (file, raw_config(b'"\\ud800"')),
        "a backbone that is a list": (file, lambda folder: with_config(folder, backbone=[[]])),
        "2^40 numbers a word": (file, lambda f: with_setting(f, word_dimension=2**40)),
        "2^63 tokens": (file, lambda f: with_setting(f, token_limit=2**63)),
        "NaN dropout": (file, lambda f: with_setting(f, dropout=[[[[[[[[]]]]]]]])),
        "members elsewhere": (file, lambda f: with_config(f, members={"../../m": 0.5})),
        "members by an absolute name": (file, lambda f: with_config(f, members={"/etc": 0.5})),
        "members that are this folder": ("model", cycle),
    }
    for name, value in {
        "sharpness": 1e308, "level": -1e308, "documents": -1, "more": 1, "sharpness ": nested,
    }.items():  # fmt: skip
        absurd = {"sharpness": 5.0, "level": 0.1, "documents": 50}
        absurd[name.strip()] = [[[[[[[]]]]]]] if value is nested else value
        attacks[f"calibration with absurd {name}"] = (
            file,
            lambda folder, a=absurd: with_config(folder, calibration=a),
        )
    file = "vocabulary.json"
    words = {
        "words of depth 100,000": nested(100_000),
        "a word of depth 1,000": b'{"format":1,"words":["<unk>",' + nested(1000) + b"]}",
        "20 million empty lists": b'{"format":1,"words":[' + b"[]," * 20_000_000 + b"[]]}",
        "40 MB of nesting beside the words": b'{"format":1,"words":["<unk>"],"x":'
        + b"[" * 40_000_000,
        "a word of 40 MB twice": b'{"format":1,"words":["<unk>","'
        + b"x" * 20_000_000 + b'","' + b"x" * 20_000_000 + b'"]}',
        "70 MB of words": b" " * 70 * MIB,
    }  # fmt: skip
    attacks |= {name: (file, replaced(file, data)) for name, data in words.items()}
    attacks |= {
        "ONNX that is a pickle": ("backbone-", tuned(pickled)),
        "ONNX that is nothing": ("backbone-", tuned(b"")),
        "ONNX of noise": ("backbone-", tuned(b"\xff" * 1000)),
        "ONNX cut short": ("backbone-", tuned(bad_graph()[:-9])),
        "ONNX of another network": ("backbone-", tuned(bad_graph())),
        "ONNX that grows to 100 GB": ("backbone-", tuned(large_constant())),
    }
    return attacks


def feature_attacks(canary):
    ids = b'{"a": 0}'
    matrices = {
        "objects": object_npy(canary),
        "objects promised": npy("|O", (1, 1), pickle.dumps(Canary(canary))),
        "a pickle": pickle.dumps(Canary(canary)),
        "100 GB promised": npy("<f4", (25 * 10**6, 1000)),
        "a shape that overflows": npy("<f4", (2**62, 2**62)),
        "no rows of 10^30": npy("<f4", (0, 10**30)),
        "a header of brackets": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
        "a header that calls": b"\x93NUMPY\x01\x00\x30\x00" + b"__import__('os').abort()".ljust(48),
    }
    attacks = {
        name: ({"net.npy": data, "id2row.json": ids}, "net.npy") for name, data in matrices.items()
    }
    good = npy("<f4", (1, 2), b"\0" * 8)
    for name, data in {
        "ids that are a pickle": pickle.dumps(Canary(canary)),
        "ids of depth 100,000": nested(100_000),
        "a row of depth 1,000": b'{"a":' + nested(1000) + b"}",
        "an id of 20 MB": b'{"' + b"x" * 20_000_000 + b'":-1}',
    }.items():
        attacks[name] = ({"net.npy": good, "id2row.json": data}, "id2row.json")
    return attacks


def word_vector_attacks(canary):
    words, vectors = npy("<U3", (1,), b"a\0\0\0" * 3), npy("<f4", (1, 2), b"\0" * 8)
    return {
        "objects as vectors": npz(words=words, vectors=object_npy(canary)),
        "objects as words": npz(words=object_npy(canary), vectors=vectors),
        "a pickle in a zip": npz(words=pickle.dumps(Canary(canary)), vectors=vectors),
        "a pickle": pickle.dumps(Canary(canary)),
        "100 GB promised in a zip": npz(words=words, vectors=npy("<f4", (1, 25 * 10**9))),
        "words of 8 GB each": npz(words=npy("<U2000000000", (1,)), vectors=vectors),
        "a zip bomb": npz(words=words, vectors=npy("<f4", (1, 25 * 10**6), bytes(10**8))),
        "a header of brackets": npz(
            words=b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000, vectors=vectors
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Name, kind and path of every hostile file, what the refusal has to name, and the canary."""
    root = tmp_path_factory.mktemp("hostile")
    canary = root / "executed"
    made = []
    small_model().save_pretrained(root / "good")
    for number, (name, (file, attack)) in enumerate(model_attacks(canary).items()):
        folder = root / f"model-{number}"
        shutil.copytree(root / "good", folder)
        attack(folder)
        made.append((f"model: {name}", "model", folder, file))
    for number, (name, (files, file)) in enumerate(feature_attacks(canary).items()):
        folder = root / f"features-{number}"
        folder.mkdir()
        for one, data in files.items():
            (folder / one).write_bytes(data)
        made.append((f"features: {name}", "features", folder, file))
    for number, (name, data) in enumerate(word_vector_attacks(canary).items()):
        (root / f"vectors-{number}.npz").write_bytes(data)
        made.append((f"vectors: {name}", "word_vectors", root / f"vectors-{number}.npz", ".npz"))
    made.append(("control: a good model", "model", root / "good", ""))
    made.append(("control: memory", "swell", root, ""))
    yield made, canary
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def outcomes(cases):
    lines = b"".join(
        orjson.dumps([name, kind, str(path)]) + b"\n" for name, kind, path, _ in cases[0]
    )
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(MEGABYTES)],
        input=lines,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=True,
        timeout=120,
    )
    return dict(orjson.loads(line) for line in done.stdout.splitlines())


def fault(said, path, file, seconds=SECONDS, megabytes=MEGABYTES):
    """What is wrong with how a hostile file was met; None if nothing is."""
    if said["outcome"] != "refused":
        return "not refused"
    # Opened only when images are read, the network is named as it is called in its folder.
    if file not in said["said"] or not (file == "backbone-" or str(path) in said["said"]):
        return "not named"
    if len(said["said"]) > len(str(path)) + 600:
        return "no sentence"
    if said["seconds"] > seconds or said["megabytes"] > megabytes:
        return "too costly"
    return None


def test_every_hostile_file_is_refused_by_a_sentence_within_its_limits(cases, outcomes):
    hostile = [case for case in cases[0] if not case[0].startswith("control")]
    assert len(hostile) > 80
    found = {
        name: (fault(outcomes[name], path, file), outcomes[name]) for name, _, path, file in hostile
    }
    assert not {name: one for name, one in found.items() if one[0]}


def test_nothing_in_a_hostile_file_was_executed(cases, outcomes, tmp_path):
    _, canary = cases
    assert len(outcomes) > 80 and not canary.exists()
    # The same bytes do execute where they are unpickled, and where numpy is allowed to.
    pickle.loads(pickle.dumps(Canary(tmp_path / "pickle"))).close()
    np.load(io.BytesIO(object_npy(tmp_path / "npy")), allow_pickle=True).item().close()
    assert (tmp_path / "pickle").exists() and (tmp_path / "npy").exists()


def test_the_limits_are_felt_and_a_good_model_is_not_refused(cases, outcomes):
    assert outcomes["control: a good model"]["outcome"] == "loaded"
    assert outcomes["control: memory"]["outcome"] == "MemoryError"
    path, said = next((path, outcomes[name]) for name, _, path, _ in cases[0])
    assert fault(said, path, "config.json") is None
    assert fault(said, path, "vocabulary.json") == "not named"
    assert fault({**said, "said": said["said"] * 20}, path, "config.json") == "no sentence"
    assert fault({**said, "outcome": "died"}, path, "config.json") == "not refused"
    assert fault({**said, "seconds": 2.1}, path, "config.json") == "too costly"
    assert fault({**said, "megabytes": 301}, path, "config.json") == "too costly"


def test_a_hostile_model_ends_the_command_with_one_sentence(cases):
    path = next(path for name, _, path, _ in cases[0] if name == "model: config from a pipe")
    done = subprocess.run(
        [sys.executable, "-m", "sightline", "link", str(path), "--model", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"{path / 'config.json'} is not a regular file." in done.stderr
