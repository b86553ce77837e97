"""The state of a training run after an epoch: one file, replaced in one step.

A run that is killed at any moment continues from here to the same weights, bit for bit: the
random numbers of an epoch depend on the seed and the epoch alone, so weights, the optimiser's
moments and a few numbers are all there is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
import torch
from torch import Tensor

from sightline.adam import Adam
from sightline.encoders import Encoders
from sightline.files import write_atomically
from sightline.model_files import read_tensors, weights_bytes
from sightline.problems import SightlineError

FILE = "checkpoint.safetensors"


@dataclass
class RunState:
    """What a run knows beside its weights."""

    epoch: int  # epochs done
    learning_rate: float
    best_loss: float  # lowest validation loss so far
    best_epoch: int
    waited: int  # epochs without a better one since the last drop
    #: Settings (but for the number of epochs) and corpus; another run's checkpoint is refused.
    fingerprint: str


def save_checkpoint(folder: Path, encoders: Encoders, optimizer: Adam, state: RunState) -> None:
    """Write the checkpoint; the last good one stays until the new one is whole."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in encoders.named_parameters():
        moments = optimizer.state[parameter]
        tensors[f"weight.{name}"] = parameter.detach()
        for moment in ("step", "exp_avg", "exp_avg_sq"):
            tensors[f"{moment}.{name}"] = moments[moment]
    arrays = {name: np.atleast_1d(tensor.cpu().numpy()) for name, tensor in tensors.items()}
    text = orjson.dumps(asdict(state)).decode()
    write_atomically(folder / FILE, weights_bytes(arrays, {"state": text}))


def load_checkpoint(
    folder: Path, encoders: Encoders, optimizer: Adam, fingerprint: str
) -> RunState:
    """Restore weights and optimiser in place and return the run's state."""
    file = folder / FILE
    arrays, metadata = read_tensors(file, file.read_bytes())
    try:
        state = RunState(**orjson.loads(metadata["state"]))
    except (KeyError, TypeError, ValueError) as error:
        raise SightlineError(f"{file} is not a Sightline checkpoint ({error}).") from None
    if state.fingerprint != fingerprint:
        raise SightlineError(
            f"{file} belongs to a run with other settings or another corpus; repeat the command "
            "that started it, or train into a new folder."
        )
    for name, parameter in encoders.named_parameters():
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(arrays[f"weight.{name}"].copy()))
        moments = {"step": torch.tensor(float(arrays[f"step.{name}"][0]), device=parameter.device)}
        for moment in ("exp_avg", "exp_avg_sq"):
            # Laid out in memory as the parameter is: the fused optimiser takes that for granted.
            moments[moment] = torch.empty_like(parameter, requires_grad=False)
            moments[moment].copy_(torch.from_numpy(arrays[f"{moment}.{name}"].copy()))
        optimizer.state[parameter] = moments
    return state
