"""Training on several processes, on one machine or several, as `torchrun` starts them.

Every process builds the whole batch, so that all random draws are those of one process, and
encodes its own share of the batch's documents. The vectors of all are gathered, each process takes
the loss of the whole batch, which gives the complete gradient of its own vectors, and the gradients
of the parameters are summed: the same step as that of one process, but for rounding.

A plain run is one process and never touches torch.distributed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from sightline.batches import Batch, Sentences
from sightline.problems import SightlineError

#: What torchrun sets; all of it has to be there.
_ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
#: The others wait so long while the first reads a corpus or scores the validation documents. A
#: process that ends is noticed at once; this is for a machine that vanishes without a word.
_PATIENCE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Share:
    """Which documents, sentences and images of a batch one process encodes."""

    documents: slice
    sentences: slice
    images: slice

    def of(self, batch: Batch) -> Batch:
        """The share of the batch as a batch of its own."""
        tokens = _starts(batch.sentences.lengths)
        first, last = tokens[self.sentences.start], tokens[self.sentences.stop]
        return Batch(
            Sentences(
                batch.sentences.token_ids[first:last], batch.sentences.lengths[self.sentences]
            ),
            batch.image_rows[self.images],
            batch.sentences_D[self.documents],
            batch.images_D[self.documents],
        )


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a run, and which of them this is; by default the only one."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes, validates and speaks."""
        return self.rank == 0

    def shares(self, batch: Batch) -> list[Share]:
        """Each process's share of a batch; with few documents the last ones have none."""
        documents = len(batch.sentences_D)
        least, more = divmod(documents, self.count)
        sizes = [least + (rank < more) for rank in range(self.count)]
        ends = list(accumulate(sizes, initial=0))
        sentences, images = _starts(batch.sentences_D), _starts(batch.images_D)
        return [
            Share(
                slice(first, last),
                slice(int(sentences[first]), int(sentences[last])),
                slice(int(images[first]), int(images[last])),
            )
            for first, last in pairwise(ends)
        ]

    def gather(self, own: Tensor, parts: Sequence[slice]) -> Tensor:
        """The rows of all processes in their order; only this process's own have a gradient."""
        most = max(part.stop - part.start for part in parts)
        padded = own.new_zeros(most, *own.shape[1:])
        padded[: len(own)] = own.detach()
        received = [torch.empty_like(padded) for _ in parts]
        with _together():
            dist.all_gather(received, padded)
        rows = [rows[: part.stop - part.start] for rows, part in zip(received, parts, strict=True)]
        rows[self.rank] = own
        return torch.cat(rows)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give each parameter the sum of its gradients in all processes."""
        learned = list(parameters)
        for parameter in learned:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in learned if parameter.grad is not None]
        total = torch.cat([gradient.reshape(-1) for gradient in gradients])
        with _together():
            dist.all_reduce(total)
        parts = torch.split(total, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view(gradient.shape))

    def start_alike(self, parameters: Iterable[nn.Parameter]) -> None:
        """Take the first process's weights: other machines may round the first ones otherwise."""
        if self.count == 1:
            return
        with torch.no_grad(), _together():
            for parameter in parameters:
                values = parameter.detach().clone(memory_format=torch.contiguous_format)
                dist.broadcast(values, 0)
                parameter.copy_(values)

    def from_first(self, make: Callable[[], Any]) -> Any:
        """A JSON value that the first process makes and tells the others."""
        if self.count == 1:
            return make()
        # The standard library's JSON, because a loss may be no finite number.
        text = json.dumps(make()).encode() if self.is_first else b""
        size = torch.tensor([len(text)])
        with _together():
            dist.broadcast(size, 0)
            told = torch.zeros(int(size), dtype=torch.uint8)
            if self.is_first:
                told = torch.frombuffer(bytearray(text), dtype=torch.uint8)
            dist.broadcast(told, 0)
        return json.loads(told.numpy().tobytes())


#: A run that nobody distributed.
ALONE = Processes()


def found_device(name: str) -> str:
    """The device that this process trains on: "cpu", or for "cuda" a GPU of its own."""
    if name == "cpu":
        return name
    place = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.device_count() <= place:
        raise SightlineError(
            f"There is no GPU for process {place + 1} of this machine: torch finds "
            f"{torch.cuda.device_count()}. Train with --device cpu, or install a torch for CUDA."
        )
    torch.cuda.set_device(place)
    return f"cuda:{place}"


@contextmanager
def started_processes(device: str = "cpu") -> Iterator[Processes]:
    """Join the processes that `torchrun` started with this one; all but the first are silent.

    On GPUs ("cuda") each process of a machine takes one of its own.
    """
    if any(name not in os.environ for name in _ENVIRONMENT) or os.environ["WORLD_SIZE"] == "1":
        yield ALONE
        return
    with _together():
        # Vectors and gradients travel between GPUs by nccl, all else by gloo.
        backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, timeout=_PATIENCE)
    processes = Processes(dist.get_rank(), dist.get_world_size())
    try:
        with ExitStack() as silence:
            if not processes.is_first:
                nowhere = silence.enter_context(open(os.devnull, "w"))  # noqa: PTH123
                silence.enter_context(redirect_stdout(nowhere))
                silence.enter_context(redirect_stderr(nowhere))
            yield processes
    finally:
        dist.destroy_process_group()


@contextmanager
def _together() -> Iterator[None]:
    """Say in a sentence that the processes lost each other."""
    try:
        yield
    except RuntimeError as error:
        raise SightlineError(
            "Another process of this training run ended or cannot be reached; what it said itself "
            f"tells why. Then start all of them again with --resume. ({_first_line(error)})"
        ) from error


def _first_line(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)])
