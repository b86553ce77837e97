"""ONNX files written and read without the onnx package."""

import numpy as np
import onnxruntime
import pytest

from sightline.onnx_files import Graph, _field, read_constants


@pytest.fixture
def file():
    graph = Graph("doubled and shifted")
    graph.input("image", ["batch", 3])
    graph.constant("shift", np.arange(3, dtype=np.float32))
    half = graph.constant("factor", np.full((1, 3), 2, np.float16))
    factor = graph.node("Cast", [half], "factor.float32", to=1)
    product = graph.node("Mul", ["image", factor], "product")
    graph.node("Add", [product, "shift"], "result")
    graph.constant("kept", np.array([[-128, 127]], np.int8))
    graph.output("result", ["batch", 3])
    return graph.to_bytes({"license": "none"})


def test_onnx_runtime_runs_what_is_written(file):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map == {"license": "none"}
    (result,) = session.run(["result"], {"image": np.ones((2, 3), np.float32)})
    assert result.tolist() == [[2, 3, 4], [2, 3, 4]]


def test_a_list_is_an_attribute_too():
    graph = Graph("pool")
    graph.input("image", ["batch", 1, 4, 4])
    graph.node("MaxPool", ["image"], "result", kernel_shape=[2, 2], strides=[2, 2])
    graph.output("result", ["batch", 1, 2, 2])
    session = onnxruntime.InferenceSession(graph.to_bytes({}), providers=["CPUExecutionProvider"])
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    assert session.run(None, {"image": image})[0].ravel().tolist() == [5, 7, 13, 15]


def test_arrays_come_back_as_they_were(file):
    found = read_constants(file, ["kept", "nothing", "factor", "shift"])
    assert list(found) == ["kept", "factor", "shift"]
    assert found["kept"].tolist() == [[-128, 127]]
    assert (found["factor"].dtype, found["factor"].shape) == (np.float16, (1, 3))
    assert found["shift"].tolist() == [0, 1, 2]


def test_every_cut_is_noticed_or_changes_nothing(file):
    """A message may end after any whole field; nothing but `ValueError` may come out."""
    noticed = 0
    for size in range(len(file)):
        try:
            read_constants(file[:size], ["kept", "factor", "shift"])
        except ValueError:
            noticed += 1
    assert noticed > len(file) * 0.9


@pytest.mark.parametrize("data", [b"\xff" * 20, b"\x07", b"\x0a"], ids=["number", "kind", "size"])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"protocol buffer|cut short"):
        read_constants(data, ["kept"])


def with_shape(*sizes):
    """An ONNX file whose one array has 3 numbers and claims these sizes."""
    tensor = b"".join(_field(1, size) for size in sizes)
    tensor += _field(2, 1) + _field(8, "kept") + _field(9, bytes(12))
    return _field(7, _field(5, tensor))


@pytest.mark.parametrize(
    "sizes", [(4,), (2**64 - 3,), (2**69, 0), (2**40, 2**40), (0, 2**60), (1,) * 9, (1,) * 100_000]
)
def test_shapes_that_lie_are_refused(sizes):
    assert read_constants(with_shape(3), ["kept"])["kept"].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"dimensions|do not fit"):
        read_constants(with_shape(*sizes), ["kept"])
