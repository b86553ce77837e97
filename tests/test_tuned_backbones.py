"""The image network of a model folder: our own graph with other weights, and no other one."""

import numpy as np
import pytest

from sightline import efficientnet_lite
from sightline.backbones import BackboneError, backbone_file
from sightline.onnx_files import _attribute, _field
from sightline.tuned_backbones import TunedBackbone

NAME = "efficientnet-lite0"


@pytest.fixture(scope="module")
def weights():
    return efficientnet_lite.folded_weights(NAME, backbone_file(NAME)[1])


@pytest.fixture(scope="module")
def own(weights):
    return efficientnet_lite.write_tuned(NAME, weights)


def node(operator, *attributes, domain=b""):
    parts = [_field(1, "features"), _field(2, "more"), _field(4, operator), *attributes]
    return b"".join([*parts, domain])


#: What is added to the file: a message of the same kind is merged with the one that is there.
ADDED = {
    "an operator": _field(7, _field(1, node("Relu"))),
    "a loop": _field(7, _field(1, node("Loop", _field(5, _field(1, "body") + _field(6, b""))))),
    "an operator of others": _field(7, _field(1, node("Any", domain=_field(7, "evil")))),
    "a function": _field(25, _field(1, "f")),
    "an external array": _field(
        7, _field(5, _field(8, "x") + _field(13, _field(1, "location") + _field(2, "/etc/passwd")))
    ),
    "another output": _field(7, _field(12, _field(1, "pooled"))),
    "a note": _field(6, "anything"),
}


def test_a_network_that_we_wrote_is_run(own):
    batch = np.zeros((1, 3, 224, 224), np.float32)
    assert TunedBackbone(NAME, own).open().features(batch).shape == (1, 1280)


@pytest.mark.parametrize("what", ADDED)
def test_a_network_with_something_added_is_refused(own, what):
    with pytest.raises(BackboneError, match=r"backbone-\w+\.onnx is not a network of efficientnet"):
        TunedBackbone(NAME, own + ADDED[what]).open()


def test_a_network_whose_sizes_are_others_is_refused(own):
    """Padding of 100,000 pixels would take 100 GB."""
    usual = _attribute("pads", [0, 0, 1, 1])
    assert usual in own
    huge = _attribute("pads", [100, 100, 100, 100])
    assert len(huge) == len(usual)
    with pytest.raises(BackboneError, match="is not a network of"):
        TunedBackbone(NAME, own.replace(usual, huge, 1)).open()


def test_weights_of_other_shapes_are_refused(weights):
    name = next(iter(weights))
    other = {**weights, name: np.zeros((3, 3, 3, 3), np.float32)}
    with pytest.raises(BackboneError, match="cannot be run"):
        TunedBackbone(NAME, efficientnet_lite.write_tuned(NAME, other)).open()


def test_a_file_without_a_layer_is_refused(weights):
    graph = efficientnet_lite.write_tuned(NAME, weights).replace(b"_conv_stem", b"_conv_mets")
    with pytest.raises(BackboneError, match=r"_conv_stem\.weight is missing"):
        TunedBackbone(NAME, graph).open()
