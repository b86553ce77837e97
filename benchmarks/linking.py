"""Documents per CPU-second of bulk linking, beside MMC4's recipe and a loop over documents.

Documents are MMC4-like: 5 images and 40 sentences of 7 to 15 words, drawn from 20,000 made-up words
by Zipf's law, no two sentences alike; the model has random weights, which cost what trained ones
do. Contestants take turns in each round on one thread, and the best round counts.

(a) the assignment alone, the similarity matrices given: MMC4 pads each document's matrix to a
    square with numpy and solves it with lapjv (allenai/mmc4); ours solves all at once.
(b) from stored features and text to JSON records: one document after the other through
    `LinkModel.similarity_matrix` and `linking.link`, against `link_records`.

    OMP_NUM_THREADS=1 python benchmarks/linking.py [--encoder attention|gru] [--dimension 256]
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import orjson

from sightline import numpy_encoders
from sightline.bulk_linking import Block, link_block, links_in_order, similarity_blocks
from sightline.corpus import read
from sightline.features import FeatureStore, write_feature_store
from sightline.image_features import StoredImages
from sightline.link_records import link_records
from sightline.linking import link
from sightline.model import LinkModel
from sightline.model_files import expected_shapes
from sightline.settings import Settings
from sightline.token_ids import TokenIds
from sightline.vocabulary import Vocabulary

SENTENCES, IMAGES, WORDS, FEATURES = 40, 5, 20_000, 1280


def make_model(encoder, dimension):
    """A model with random weights of the given size."""
    settings = Settings(
        dimension=dimension, hidden=2 * dimension, layers=2, sentence_encoder=encoder
    )
    rng = np.random.default_rng(0)
    weights = {
        name: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in expected_shapes(settings, WORDS, FEATURES).items()
    }
    words = ["<unk>", *(f"w{number}" for number in range(WORDS - 1))]
    return LinkModel(settings, Vocabulary(words), weights, "random")


def write_corpus(folder, documents):
    """Write documents and the features of their images."""
    rng = np.random.default_rng(1)
    chances = 1 / np.arange(1, WORDS)
    lengths = rng.integers(7, 16, documents * SENTENCES)
    drawn = rng.choice(WORDS - 1, lengths.sum(), p=chances / chances.sum()).tolist()
    ends = np.cumsum(lengths).tolist()
    text = [
        " ".join(f"w{word}" for word in drawn[end - length : end]).capitalize() + "."
        for end, length in zip(ends, lengths.tolist(), strict=True)
    ]
    ids = [f"image-{number}" for number in range(documents * IMAGES)]
    vectors = np.maximum(rng.standard_normal((len(ids), FEATURES), np.float32), 0)
    write_feature_store(folder / "features", "random", ids, vectors, {})
    with (folder / "documents.jsonl").open("wb") as file:
        for d in range(documents):
            record = {
                "id": str(d),
                "sentences": text[d * SENTENCES : (d + 1) * SENTENCES],
                "images": [f"{image}.jpg" for image in ids[d * IMAGES : (d + 1) * IMAGES]],
            }
            file.write(orjson.dumps(record) + b"\n")


def turns(contestants, rounds):
    """CPU seconds of each contestant's best round, and its last answer."""
    best, answers = dict.fromkeys(contestants, np.inf), {}
    for _ in range(rounds):
        for name, run in contestants.items():
            started = time.process_time()
            answers[name] = run()
            best[name] = min(best[name], time.process_time() - started)
    return best, answers


# ---- (a)


def mmc4_recipe(similarity_DSV):
    """Pad, solve, take the padding away: one document after the other."""
    import lapjv

    found = []
    for similarity_SV in similarity_DSV:
        cost = -similarity_SV.T
        images, sentences = cost.shape
        square = np.pad(
            cost, [(0, max(0, sentences - images)), (0, max(0, images - sentences))],
            constant_values=1000,
        )  # fmt: skip
        column_of_row, _, _ = lapjv.lapjv(square)
        found.append(column_of_row[:images])
    return found


def assignment(rounds, documents):
    """Print documents per CPU-second of the assignment alone."""
    rng = np.random.default_rng(2)
    vectors = [rng.standard_normal((documents, n, 64), np.float32) for n in (SENTENCES, IMAGES)]
    vectors = [v / np.linalg.norm(v, axis=2, keepdims=True) for v in vectors]
    similarity_DSV = np.matmul(vectors[0], vectors[1].transpose(0, 2, 1))
    counts = [np.full(documents, n) for n in (SENTENCES, IMAGES)]
    block = Block(np.arange(documents), similarity_DSV, *counts)

    def ours():
        linked = link_block(block, "mmc4")
        return np.nonzero(linked.transpose(0, 2, 1))[2].reshape(documents, IMAGES)

    ours()  # compiles
    best, answers = turns({"mmc4": lambda: mmc4_recipe(similarity_DSV), "ours": ours}, rounds)
    images = np.arange(IMAGES)
    for theirs, our, similarity_SV in zip(*answers.values(), similarity_DSV, strict=True):
        totals = [similarity_SV[chosen, images].sum() for chosen in (theirs, our)]
        assert abs(totals[0] - totals[1]) < 1e-4
    rates = {name: documents / seconds for name, seconds in best.items()}
    print(f"(a) assignment of {documents:,} matrices, {SENTENCES} x {IMAGES}, documents/CPU-second")
    print(f"    numpy padding + lapjv (MMC4's recipe)  {rates['mmc4']:12,.0f}")
    print(f"    sightline                              {rates['ours']:12,.0f}"
          f"  {rates['ours'] / rates['mmc4']:.1f}x\n")  # fmt: skip


# ---- (b)


def one_by_one(model, folder, store, documents):
    """Link the first documents in a loop."""
    lines = []
    for document, _ in zip(read(folder), range(documents), strict=False):
        similarity_SV = model.similarity_matrix(document, store)
        record = {
            "id": document.id,
            "links": [
                {"sentence": one.sentence, "image": one.image, "score": one.score,
                 "confidence": one.confidence}
                for one in link(similarity_SV)
            ],
            "images": [{"id": i, "status": "ok", "reason": None} for i in document.images],
            "sentences": document.sentences,
        }  # fmt: skip
        lines.append(orjson.dumps(record))
    return lines


def end_to_end(model, folder, rounds, documents):
    """Print documents per CPU-second from text and features to JSON."""
    store = FeatureStore.open(folder / "features")
    few = max(50, documents // 10)  # the loop is slow, and its rate does not change

    def bulk():
        corpus = read(folder, allow_empty=True)
        return [orjson.dumps(record) for record in link_records(model, corpus, StoredImages(store))]

    bulk()
    loop = lambda: one_by_one(model, folder, store, few)  # noqa: E731
    best, answers = turns({"loop": loop, "bulk": bulk}, rounds)
    worst = 0.0
    for theirs, ours in zip(*(map(json.loads, lines) for lines in answers.values()), strict=False):
        assert theirs["id"] == ours["id"]
        scores = [[one["score"] for one in record["links"]] for record in (theirs, ours)]
        worst = max(worst, float(np.abs(np.subtract(*scores)).max(initial=0)))
    assert worst < 1e-6
    rates = {"loop": few / best["loop"], "bulk": documents / best["bulk"]}
    print(f"(b) {documents:,} documents from text and features to JSON, documents/CPU-second")
    print(f"    a loop over documents                  {rates['loop']:12,.0f}")
    print(f"    sightline                              {rates['bulk']:12,.0f}"
          f"  {rates['bulk'] / rates['loop']:.1f}x")  # fmt: skip
    print(f"    largest difference of a score {worst:.1e}\n")


def where_the_time_goes(model, folder, rounds):
    """Print the stages of bulk linking, and the encoder beside the matrix-multiply peak."""
    store, weights = FeatureStore.open(folder / "features"), model.weights
    corpus = list(read(folder, allow_empty=True))
    text = [sentence for document in corpus for sentence in document.sentences]
    reader = TokenIds(model.vocabulary, model.settings.token_limit)
    tokens, _ = reader.of(text)
    sentence_NE = numpy_encoders.encode_sentences(weights, tokens)
    _, features = StoredImages(store).read(corpus)
    image_ME = numpy_encoders.encode_images(weights, features)
    counts = [len(d.sentences) for d in corpus], [len(d.images) for d in corpus]
    blocks = list(similarity_blocks(sentence_NE, image_ME, *counts))
    masks = [(block, link_block(block)) for block in blocks]
    square = np.random.default_rng(0).standard_normal((2048, 2048), np.float32)
    stages = {
        "reading documents": lambda: list(read(folder, allow_empty=True)),
        "token ids": lambda: reader.of(text),
        "sentence encoder": lambda: numpy_encoders.encode_sentences(weights, tokens),
        "image features": lambda: StoredImages(store).read(corpus),
        "image encoder": lambda: numpy_encoders.encode_images(weights, features),
        "similarity matrices": lambda: list(similarity_blocks(sentence_NE, image_ME, *counts)),
        "assignment": lambda: [link_block(block) for block in blocks],
        "links in order": lambda: list(links_in_order(masks, len(corpus))),
        "peak": lambda: square @ square,
    }
    best, _ = turns(stages, rounds)
    peak = 2 * 2048**3 / best.pop("peak")
    print("where the time goes, microseconds a document")
    for name, seconds in best.items():
        print(f"    {name:<20} {1e6 * seconds / len(corpus):8.1f}")
    work = encoder_operations(weights, tokens)
    rate = work / best["sentence encoder"]
    print(f"    the sentence encoder: {work / len(text) / 1e6:.2f} million operations a sentence, "
          f"{rate / 1e9:.0f} of {peak / 1e9:.0f} GFLOP/s, {100 * rate / peak:.0f} % of the peak of "
          "a matrix product")  # fmt: skip


def encoder_operations(weights, tokens):
    """Multiplications and additions of the encoder's matrix products."""
    if "sentence.attention" in weights:
        heads = [w.size for name, w in weights.items() if "sentence.head" in name and w.ndim == 2]
        return 2 * sum(heads) * len(tokens.lengths)
    words = len(np.unique(tokens.token_ids))
    steps = len(tokens.token_ids) - len(tokens.lengths)  # the first has a zero state
    return 2 * (
        weights["sentence.weight_hh"].size * steps + weights["sentence.weight_ih"].size * words
    )


def main():
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", choices=["attention", "gru"], default="attention")
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    assignment(given.rounds, given.documents)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder, given.documents)
        model = make_model(given.encoder, given.dimension)
        end_to_end(model, folder, given.rounds, given.documents)
        where_the_time_goes(model, folder, given.rounds)


if __name__ == "__main__":
    main()
