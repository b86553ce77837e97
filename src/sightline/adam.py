"""Adam, by torch's own functions and numbers, without what its class imports.

`torch.optim.Adam` imports torch's compiler when it is first used: two CPU-seconds of every run,
and of every process of a distributed one, for a compiler that no run uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class Adam:
    """What a training run needs of `torch.optim.Adam(groups, fused=True)`, to the same bits."""

    def __init__(self, param_groups: Iterable[dict[str, Any]]) -> None:
        self.param_groups = list(param_groups)
        #: Of each parameter that has learned: "step", "exp_avg" and "exp_avg_sq".
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            learning = [parameter for parameter in group["params"] if parameter.grad is not None]
            moments = [self._moments(parameter) for parameter in learning]
            adam(
                learning,
                [parameter.grad for parameter in learning],
                [moment["exp_avg"] for moment in moments],
                [moment["exp_avg_sq"] for moment in moments],
                [],
                [moment["step"] for moment in moments],
                fused=True,
                amsgrad=False,
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                lr=group["lr"],
                weight_decay=0.0,
                eps=_EPSILON,
                maximize=False,
            )

    def _moments(self, parameter: Tensor) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter, requires_grad=False),
                "exp_avg_sq": torch.zeros_like(parameter, requires_grad=False),
            }
        return self.state[parameter]
