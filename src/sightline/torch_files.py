"""Weights in a file that torch wrote in 2020, read without torch, and without running any of it."""

from __future__ import annotations

from io import BytesIO
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


def read_torch_weights(data: bytes) -> dict[str, NDArray[Any]]:
    """Arrays by name.

    The file is a few pickles followed by the bare numbers. The pickles are not loaded but read
    instruction by instruction (`pickletools`), and only those that make up such a file are known:
    nothing of the file is ever executed.
    """
    stream = BytesIO(data)
    for _ in range(3):  # a magic number, the version, sizes of types
        _read_pickle(stream)
    parameters = _read_pickle(stream)
    storages = {}
    for key in _read_pickle(stream):
        size = int.from_bytes(stream.read(8), "little")
        _, kind, *_ = next(storage for storage, *_ in parameters.values() if storage[2] == key)
        dtype = np.dtype({"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}[kind])
        storages[key] = np.frombuffer(stream.read(size * dtype.itemsize), dtype)
    return {
        name: np.lib.stride_tricks.as_strided(
            storages[storage[2]][offset:],
            shape,
            [stride * storages[storage[2]].itemsize for stride in strides],
            writeable=False,
        )
        for name, (storage, offset, shape, strides, *_) in parameters.items()
    }


def _read_pickle(stream: IO[bytes]) -> Any:
    """The value of one pickle made of plain values; what it would call is only noted.

    A tensor is the tuple of what it would be rebuilt from: storage, offset, shape, strides.
    """
    import pickletools  # slow to import, and seldom needed

    stack: list[Any] = []
    marks: list[int] = []
    memory: dict[Any, Any] = {}

    def since_mark() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    for instruction, argument, _ in pickletools.genops(stream):
        match instruction.name:
            case "PROTO" | "STOP" | "BINPERSID":
                pass
            case "BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1" | "GLOBAL":
                stack.append(argument)
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[instruction.name])
            case "EMPTY_TUPLE" | "EMPTY_LIST" | "EMPTY_DICT":
                stack.append({"TUPLE": (), "LIST": [], "DICT": {}}[instruction.name[6:]])
            case "MARK":
                marks.append(len(stack))
            case "TUPLE":
                stack.append(tuple(since_mark()))
            case "TUPLE1" | "TUPLE2":
                items = [stack.pop() for _ in range(int(instruction.name[-1]))]
                stack.append(tuple(reversed(items)))
            case "APPENDS":
                items = since_mark()
                stack[-1].extend(items)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                stack[-1][key] = value
            case "SETITEMS":
                items = since_mark()
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "BINPUT" | "LONG_BINPUT":
                memory[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memory[argument])
            case "REDUCE":
                arguments, called = stack.pop(), stack.pop()
                stack.append({} if called == "collections OrderedDict" else arguments)
            case "BUILD":
                stack.pop()
            case unknown:
                raise ValueError(f"not a file of weights: instruction {unknown}")
    return stack.pop()
