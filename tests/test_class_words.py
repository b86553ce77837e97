"""The word vectors of the classes that an image network sees."""

import numpy as np
import pytest

from sightline.backbones import class_names, load_backbone
from sightline.class_words import BIAS, WEIGHT, WORDS, class_weights, join_class_words
from sightline.sentences import tokenize
from sightline.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("efficientnet-lite0", threads=1)


@pytest.fixture(scope="module")
def weights(backbone):
    words = sorted({word for name in class_names()[:700] for word in tokenize(name)})
    vocabulary = Vocabulary(["<unk>", *words])
    embedding = np.random.default_rng(0).normal(size=(len(vocabulary), 20)).astype(np.float32)
    return class_weights(backbone, class_names(), vocabulary, embedding)


def test_the_weights_give_the_networks_own_class_scores(backbone, weights):
    features = np.random.default_rng(1).random((5, 1280)).astype(np.float32)
    scores = features @ weights[WEIGHT].T + weights[BIAS]
    np.testing.assert_allclose(scores, backbone.class_scores(features), atol=1e-4)


def test_the_joined_vector_is_the_weighted_mean_of_the_ten_likeliest(weights):
    features = np.random.default_rng(2).random((6, 1280)).astype(np.float32)
    joined = join_class_words(weights, features)
    assert joined.shape == (6, 1300)
    assert (joined[:, :1280] == features).all()
    for row, feature in zip(joined[:, 1280:], features, strict=True):
        score = weights[WEIGHT] @ feature + weights[BIAS]
        mean = np.zeros(20)
        for place in np.argsort(-score)[:10]:
            mean += np.exp(score[place] / 2) * weights[WORDS][place].astype(float)
        np.testing.assert_allclose(row, 8 * mean / np.linalg.norm(mean), atol=1e-3)


def test_a_class_without_known_words_is_zero(weights):
    names = class_names()
    unknown = names.index("toilet tissue, toilet paper, bathroom tissue")
    assert not weights[WORDS][unknown].any()


def test_a_model_without_classes_takes_features_as_they_are():
    features = np.ones((2, 3), np.float32)
    assert join_class_words({}, features) is features
