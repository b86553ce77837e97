"""The packed GRU against plain loops and against torch's own, values and gradients."""

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence

from sightline.gru import gru_final_state


def problem(lengths, word, hidden, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = sorted(lengths, reverse=True)
    running = [sum(length > step for length in lengths) for step in range(lengths[0])]
    shapes = [
        (sum(lengths), word),
        (3 * hidden, word),
        (3 * hidden, hidden),
        (3 * hidden,),
        (3 * hidden,),
    ]
    tensors = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]
    return lengths, running, tensors


lengths_lists = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(max_examples=30, deadline=None)
@given(lengths=lengths_lists, seed=st.integers(0, 10_000))
def test_equals_plain_loops(lengths, seed):
    lengths, running, (tokens, *weights) = problem(lengths, 2, 3, seed)
    found = gru_final_state(tokens, running, *weights)
    starts = [sum(running[:step]) for step in range(len(running))]
    for place, length in enumerate(lengths):
        words = [tokens[starts[step] + place].tolist() for step in range(length)]
        expected = reference.gru(words, *(weight.tolist() for weight in weights))
        assert found[place].tolist() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(lengths=lengths_lists, seed=st.integers(0, 10_000))
def test_gradients_equal_torchs(lengths, seed):
    _, running, (tokens, *weights) = problem(lengths, 4, 3, seed)
    module = torch.nn.GRU(4, 3, dtype=torch.float64)
    for parameter, weight in zip(module.parameters(), weights, strict=True):
        parameter.data.copy_(weight.detach())
    theirs_tokens = tokens.detach().clone().requires_grad_()
    _, expected = module(PackedSequence(theirs_tokens, torch.tensor(running)))
    found = gru_final_state(tokens, running, *weights)
    torch.testing.assert_close(found, expected[0])
    direction = torch.randn(found.shape, dtype=torch.float64)
    (found * direction).sum().backward()
    (expected[0] * direction).sum().backward()
    torch.testing.assert_close(tokens.grad, theirs_tokens.grad)
    for parameter, weight in zip(module.parameters(), weights, strict=True):
        torch.testing.assert_close(weight.grad, parameter.grad)


def test_gradient_of_its_definition():
    _, running, tensors = problem([4, 2, 2, 1], 3, 2, 0)
    tokens, *weights = tensors
    assert torch.autograd.gradcheck(
        lambda *inputs: gru_final_state(inputs[0], running, *inputs[1:]), (tokens, *weights)
    )
