"""A small corpus in shards with a model and features, all made here, for the tests of shards."""

import numpy as np
import orjson

from sightline.features import write_feature_store
from sightline.model import LinkModel
from sightline.model_files import expected_shapes
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary

WORDS = ("<unk>", "a", "the", "dog", "cat", "runs", "sleeps", "on", "grass", "red", "blue", ".")
IMAGES = [f"image-{number}" for number in range(40)]


def tiny_model(kind="attention"):
    settings = Settings(
        dimension=8, hidden=10, word_dimension=12, sentence_encoder=kind, layers=2, token_limit=9
    )
    rng = np.random.default_rng(0)
    shapes = expected_shapes(settings, len(WORDS), 6)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return LinkModel(settings, Vocabulary(WORDS), weights, "some-net")


def records(rng, count, name):
    for number in range(count):
        sentences = [
            " ".join(rng.choice(WORDS[1:], rng.integers(1, 12))).capitalize()
            for _ in range(rng.integers(1, 9))
        ]
        images = [f"{image}.jpg" for image in rng.choice(IMAGES, rng.integers(1, 5))]
        yield {"id": f"{name}-{number}", "sentences": sentences, "images": images}


def write_shards(folder, shards=4, documents=30):
    """Write shards, a model and features; gives the three places."""
    (folder / "shards").mkdir(parents=True)
    rng = np.random.default_rng(1)
    for number in range(shards):
        lines = [orjson.dumps(record) for record in records(rng, documents, number)]
        (folder / "shards" / f"{number:03d}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    tiny_model().save_pretrained(folder / "model")
    vectors = rng.normal(size=(len(IMAGES), 6)).astype(np.float32)
    write_feature_store(folder / "features", "some-net", IMAGES, vectors, {}, np.float32)
    return folder / "shards", folder / "model", folder / "features"
