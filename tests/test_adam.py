"""Our Adam against torch's, and what a run imports."""

import subprocess

import pytest
import torch
from command_server import program
from torch import nn

from sightline.adam import Adam

SCRIPT = """
import sys, torch
from sightline.adam import Adam
parameter = torch.nn.Parameter(torch.ones(3))
optimizer = {made}
optimizer.zero_grad()
parameter.square().sum().backward()
optimizer.step()
print("torch._dynamo" in sys.modules)
"""


def contestants(seed=0):
    """Two equal networks with an optimiser each, whose groups have rates of their own."""
    found = []
    for make in (Adam, lambda groups: torch.optim.Adam(groups, fused=True)):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Conv2d(1, 3, 2), nn.Linear(4, 2))
        # A layout of its own, as the weights of a network that was tuned have.
        network[2].weight.data = network[2].weight.data.to(memory_format=torch.channels_last)
        groups = [
            {"params": list(network[0].parameters()), "lr": 1e-2, "relative": 1},
            {"params": [*network[2].parameters(), *network[3].parameters()], "lr": 3e-3},
        ]
        found.append((network, make(groups)))
    return found


def learn(network, optimizer, steps, seed=1, left_out=()):
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        optimizer.zero_grad()
        loss = network(torch.randn(2, 1, 6, 7, generator=generator) * 10.0 ** (step % 5 - 2))
        loss.square().mean().backward()
        if step in left_out:
            network[0].bias.grad = None
        optimizer.param_groups[1]["lr"] *= 0.9
        optimizer.step()


@pytest.mark.parametrize("left_out", [(), (0, 1, 4)])
def test_a_run_has_the_bits_of_torchs_adam(left_out):
    (ours, our_optimizer), (theirs, their_optimizer) = contestants()
    start = [parameter.detach().clone() for parameter in ours.parameters()]
    for network, optimizer in ((ours, our_optimizer), (theirs, their_optimizer)):
        learn(network, optimizer, 30, left_out=left_out)
    for first, ours_now, theirs_now in zip(
        start, ours.parameters(), theirs.parameters(), strict=True
    ):
        assert not torch.equal(first, ours_now)
        assert torch.equal(ours_now, theirs_now)
        for name, moment in their_optimizer.state[theirs_now].items():
            found = our_optimizer.state[ours_now][name]
            assert torch.equal(found, moment) and found.stride() == moment.stride()
            assert not found.requires_grad


def test_the_formula():
    """The update of Kingma and Ba's algorithm 1, in doubles."""
    parameter = nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    optimizer = Adam([{"params": [parameter], "lr": 0.1}])
    weight = parameter.detach().double()
    first = second = torch.zeros(3, dtype=torch.double)
    for step in range(1, 20):
        gradient = torch.tensor([step, -1e-3, 1e4 / step])
        parameter.grad = gradient.clone()
        optimizer.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient.double() ** 2
        unbiased = second / (1 - 0.999**step)
        weight = weight - 0.1 * (first / (1 - 0.9**step)) / (unbiased.sqrt() + 1e-8)
        torch.testing.assert_close(parameter.detach().double(), weight, rtol=1e-5, atol=1e-6)


def test_parameters_without_a_gradient_stay():
    parameter = nn.Parameter(torch.ones(3))
    optimizer = Adam([{"params": [parameter], "lr": 0.1}])
    optimizer.step()
    assert torch.equal(parameter.detach(), torch.ones(3)) and not optimizer.state


def test_torchs_compiler_is_not_imported():
    for made, imported in (
        ("Adam([{'params': [parameter], 'lr': 0.1}])", "False"),
        ("torch.optim.Adam([parameter], fused=True)", "True"),
    ):
        words = [program("python"), "-c", SCRIPT.replace("{made}", made)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == imported
