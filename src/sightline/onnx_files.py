"""Writing and reading ONNX files without the `onnx` package: a few fields of protocol buffers.

The numbers in `_field` calls are those of the public schema, `onnx.proto`. The same graph gives
the same bytes everywhere, so that a file made from known weights has a known hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Old enough for every ONNX Runtime since 2021, new enough for the operators used here.
_IR_VERSION = 7
_OPSET = 13
# TensorProto.DataType, both ways.
_TYPES = {"float32": 1, "int8": 3, "int64": 7, "float16": 10}
_MOST_DIMENSIONS = 8  # of a stored array; ours have up to four
_DTYPES = {number: np.dtype(name).newbyteorder("<") for name, number in _TYPES.items()}


@dataclass
class Graph:
    """A graph under construction; `to_bytes` makes it an ONNX file."""

    name: str
    _nodes: list[bytes] = field(default_factory=list)
    _initializers: list[bytes] = field(default_factory=list)
    _values: dict[int, list[bytes]] = field(default_factory=lambda: {11: [], 12: []})

    def node(
        self, operator: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]
    ) -> str:
        """Add an operator; gives the name of its output."""
        parts = [_field(1, name) for name in inputs]
        parts += [_field(2, output), _field(3, output), _field(4, operator)]
        parts += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join(parts))
        return output

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a stored array; gives its name."""
        parts = [_field(1, size) for size in values.shape]
        number = _TYPES[values.dtype.name]
        data = np.ascontiguousarray(values, _DTYPES[number]).tobytes()
        self._initializers.append(
            b"".join([*parts, _field(2, number), _field(8, name), _field(9, data)])
        )
        return name

    def input(self, name: str, shape: Sequence[int | str]) -> str:
        """Declare an input of float32; a name in `shape` stands for any size."""
        self._values[11].append(_value(name, shape))
        return name

    def output(self, name: str, shape: Sequence[int | str]) -> None:
        """Declare an output of float32."""
        self._values[12].append(_value(name, shape))

    def to_bytes(self, metadata: Mapping[str, str]) -> bytes:
        """The file; `metadata` says where it comes from."""
        graph = [_field(1, node) for node in self._nodes]
        graph.append(_field(2, self.name))
        graph += [_field(5, initializer) for initializer in self._initializers]
        graph += [_field(number, value) for number in (11, 12) for value in self._values[number]]
        model = [_field(1, _IR_VERSION), _field(2, "sightline"), _field(7, b"".join(graph))]
        model.append(_field(8, _field(1, "") + _field(2, _OPSET)))
        model += [_field(14, _field(1, key) + _field(2, text)) for key, text in metadata.items()]
        return b"".join(model)


def read_constants(data: bytes, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Those of the named arrays that an ONNX file stores, in the order of `names`.

    Raises `ValueError` if the bytes are not such a file.
    """
    found: dict[str, NDArray[Any]] = {}
    for number, graph in _fields(memoryview(data)):
        if number != 7 or isinstance(graph, int):
            continue
        for inner, tensor in _fields(graph):
            if inner == 5 and not isinstance(tensor, int):
                found.update(_array(tensor, names))
    return {name: found[name] for name in names if name in found}


def _array(tensor: memoryview, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Name and values of a stored array, if it is wanted and its numbers are stored as bytes."""
    shape: list[int] = []
    kind = 0
    texts: dict[int, memoryview] = {}
    for number, value in _fields(tensor):
        if isinstance(value, memoryview):
            texts[number] = value
        elif number == 1:
            shape.append(value)
            if len(shape) > _MOST_DIMENSIONS:
                raise ValueError("an array of too many dimensions")
        elif number == 2:
            kind = value
    name = bytes(texts.get(8, b"")).decode(errors="replace")
    if name not in names or kind not in _DTYPES or 9 not in texts:
        return {}
    values = np.frombuffer(texts[9], _DTYPES[kind])
    if math.prod(shape) != values.size:
        raise ValueError(f"{name} has {values.size:,} numbers, which do not fit its shape")
    return {name: values.reshape(shape)}


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    sizes = (_field(2, size) if isinstance(size, str) else _field(1, size) for size in shape)
    dimensions = b"".join(_field(1, size) for size in sizes)
    tensor = _field(1, _TYPES["float32"]) + _field(2, dimensions)
    return _field(1, name) + _field(2, _field(1, tensor))


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    # The last field is the attribute's type: 2 is an integer, 7 a list of them.
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + b"".join(_field(8, item) for item in value) + _field(20, 7)


def _field(number: int, value: int | str | bytes) -> bytes:
    """One field of a message: a number, or a text, bytes or message with its length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field of a message."""
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        kind = key & 7
        if kind == 0:
            value, position = _read_varint(data, position)
            yield key >> 3, value
            continue
        if kind == 2:
            size, position = _read_varint(data, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError("not a protocol buffer")
        if position + size > len(data):
            raise ValueError("cut short")
        yield key >> 3, data[position : position + size]
        position += size


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ValueError("cut short")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("not a protocol buffer")
