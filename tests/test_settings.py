"""Settings: the paper's values, kept as JSON, refused with a sentence when wrong."""

from typing import get_args

import pytest

from sightline.problems import SightlineError
from sightline.settings import Settings, SimilarityName


def test_the_defaults_are_the_papers():
    """Section 4, Experiment Protocols."""
    paper = Settings()
    assert (paper.dimension, paper.dropout, paper.margin) == (1024, 0.4, 0.2)
    assert (paper.epochs, paper.learning_rate) == (50, 0.0001)
    assert (paper.plateau_factor, paper.plateau_patience) == (5, 3)
    assert (paper.similarity, paper.negatives, paper.negative_documents) == ("AP", "hard", 10)
    assert (paper.word_dimension, paper.token_limit, paper.minimum_count) == (300, 20, 5)
    assert (paper.sentence_encoder, paper.layers, paper.loss) == ("gru", 1, "hinge")


def test_json_there_and_back():
    settings = Settings(max_links=3, layers=2, seed=9, similarity="TK")
    assert Settings.from_json(settings.to_json(), "x") == settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 0}, "dimension is 0; it must be at least 1"),
        ({"dimension": 2.5}, "dimension is 2.5; expected a whole number"),
        ({"epochs": True}, "epochs is True"),
        ({"dropout": 1.0}, "from 0 to below 1"),
        ({"dropout": float("nan")}, "dropout is nan"),
        ({"margin": 0}, "margin is 0; it must be above 0"),
        ({"temperature": -1}, "above 0"),
        ({"learning_rate": float("inf")}, "learning_rate is inf"),
        ({"similarity": "XX"}, f"expected {' or '.join(get_args(SimilarityName))}"),
        ({"max_links": "some"}, "expected all or half or a whole number"),
        ({"max_links": 0}, "at least 1"),
        ({"layers": 3}, "expected 1 or 2"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_values_are_refused(changes, message):
    with pytest.raises(SightlineError, match=message):
        Settings(**changes)


def test_a_whole_number_is_a_number():
    assert Settings(margin=1).margin == 1
