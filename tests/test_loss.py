"""The losses against the plain loops of `reference`, values and gradients."""

import math

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline.loss import hinge_loss, softmax_loss

squares = st.integers(2, 5).flatmap(
    lambda n: hnp.arrays(np.float64, (n, n), elements=st.floats(-2, 2, allow_subnormal=False))
)


@pytest.mark.parametrize("negatives", ["hard", "mean"])
@settings(max_examples=100, deadline=None)
@given(values=squares)
def test_hinge_loss(negatives, values):
    # Distinct entries, no hinge exactly at its corner: gradients are unique.
    values = values + np.linspace(0, 1e-3, values.size).reshape(values.shape)
    fast = torch.tensor(values, requires_grad=True)
    slow = torch.tensor(values, requires_grad=True)
    found = hinge_loss(fast, 0.2, negatives)
    expected = torch.stack(
        [torch.as_tensor(x) for x in reference.hinge_loss(slow.unbind(), 0.2, negatives)]
    )
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    weights = torch.arange(1.0, len(values) + 1, dtype=torch.float64)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(fast.grad, slow.grad, atol=1e-12, rtol=0)


@settings(max_examples=60, deadline=None)
@given(values=squares, temperature=st.sampled_from([0.05, 0.5, 1.0]))
def test_softmax_loss(values, temperature):
    found = softmax_loss(torch.tensor(values), temperature)
    expected = reference.softmax_loss(values.tolist(), temperature)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9, rtol=1e-9)


def test_softmax_loss_has_the_gradient_of_its_definition():
    values = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: softmax_loss(x, 0.1), values)


@pytest.mark.parametrize("negatives", ["hard", "mean"])
def test_constant_similarities_cost_twice_the_margin(negatives):
    losses = hinge_loss(torch.full((4, 4), 0.7), 0.2, negatives)
    torch.testing.assert_close(losses, torch.full((4,), 0.4))


def test_constant_similarities_cost_two_log_documents():
    losses = softmax_loss(torch.full((4, 4), 0.7), 0.05)
    torch.testing.assert_close(losses, torch.full((4,), 2 * math.log(4)))


def test_a_literal_matrix():
    similarities = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.5, 0.4], [0.0, 0.95, 0.6]])
    # document 0: images 0.2 - 0.9 + 0.8 = 0.1; sentences 0.2 - 0.9 + 0.2 < 0
    # document 1: images 0.2 - 0.5 + 0.4 = 0.1; sentences 0.2 - 0.5 + 0.95 = 0.65
    # document 2: images 0.2 - 0.6 + 0.95 = 0.55; sentences 0.2 - 0.6 + 0.4 = 0
    expected = torch.tensor([0.1, 0.75, 0.55])
    torch.testing.assert_close(hinge_loss(similarities, 0.2, "hard"), expected)
