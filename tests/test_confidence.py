"""Confidences: the formula, their estimation in worlds whose truth is known, model folders, CLI."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice

import numpy as np
import orjson
import pytest
from command_server import sightline
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline.article_page import render_article
from sightline.calibration import calibrated, estimate, store_calibration
from sightline.confidence import Calibration, with_confidence
from sightline.corpus import read
from sightline.encoders import Encoders
from sightline.evaluation import evaluate
from sightline.features import FeatureStore
from sightline.image_features import StoredImages
from sightline.link_records import link_records
from sightline.linking import Link, LinkChoices, link
from sightline.mixtures import EncodedDocument, partners_of
from sightline.model import BUNDLED, LinkModel
from sightline.problems import SightlineError
from sightline.readers.native import write_jsonl
from sightline.reliability import Reliability
from sightline.settings import Settings
from sightline.shown_article import ShownArticle
from sightline.training import train
from sightline.vocabulary import Vocabulary

POLICIES = ["assignment", "dense", "top-k", "threshold", "mmc4"]
SOME = Calibration(sharpness=8.0, level=0.2, documents=50)

matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    elements=st.floats(-1, 1, allow_subnormal=False),
)
calibrations = st.builds(Calibration, st.floats(0.1, 200), st.floats(-1, 2), st.integers(0, 10**6))


# ---- the formula


def by_hand(similarity_SV, known):
    """The share of every pair among its rivals, as plain loops."""
    sentences, images = similarity_SV.shape
    result = np.zeros((sentences, images))
    for s in range(sentences):
        for v in range(images):
            rivals = [similarity_SV[s, other] for other in range(images)]
            rivals += [similarity_SV[other, v] for other in range(sentences) if other != s]
            rivals += [known.level] * (sentences + images)
            weights = [np.exp(known.sharpness * (one - similarity_SV[s, v])) for one in rivals]
            result[s, v] = 1 / sum(weights)
    return result


@settings(max_examples=60, deadline=None)
@given(matrix=matrices, sharpness=st.floats(0.1, 40), level=st.floats(-1, 2))
def test_confidences_are_the_formula(matrix, sharpness, level):
    known = Calibration(sharpness, level, 30)
    np.testing.assert_allclose(known.confidences(matrix), by_hand(matrix, known), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(matrix=matrices, known=calibrations)
def test_confidences_of_an_image_and_of_a_sentence_add_up_to_one_at_most(matrix, known):
    confidences = known.confidences(matrix)
    assert confidences.min() >= 0
    assert confidences.sum(0).max() <= 1 + 1e-9
    assert confidences.sum(1).max() <= 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(matrix=matrices, rise=st.floats(0, 1), known=calibrations)
def test_a_higher_score_is_never_less_sure(matrix, rise, known):
    higher = matrix.copy()
    higher[0, 0] += rise
    assert known.confidences(higher)[0, 0] >= known.confidences(matrix)[0, 0] - 1e-12


def test_rivals_and_size_make_less_sure():
    lone = np.array([[0.7]])
    rival = np.array([[0.7], [0.6]])
    crowd = np.concatenate([lone, np.full((200, 1), 0.1)])
    sure = [SOME.confidences(matrix)[0, 0] for matrix in (lone, rival, crowd)]
    assert sure[0] > sure[1] > sure[2]


def test_nothing_to_link_one_pair_and_constant_scores():
    assert SOME.confidences(np.zeros((0, 3))).shape == (0, 3)
    assert SOME.confidences(np.zeros((3, 0))).shape == (3, 0)
    assert with_confidence([], np.zeros((0, 0)), SOME) == []
    assert 0 < SOME.confidences(np.array([[0.5]]))[0, 0] < 1
    constant = SOME.confidences(np.full((4, 3), 0.3))
    assert np.ptp(constant) == 0
    assert constant[0, 0] < 1 / 4  # no better than guessing the sentence


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_similarity_that_is_no_number_is_refused(value):
    with pytest.raises(SightlineError, match="not a finite number"):
        SOME.confidences(np.array([[0.1, value]]))


@settings(max_examples=30, deadline=None)
@given(first=matrices, second=matrices, known=calibrations)
def test_padded_stacks_have_the_confidences_of_each_matrix(first, second, known):
    stack = np.full((2, 5, 5), -np.inf)
    for place, matrix in enumerate((first, second)):
        stack[place, : len(matrix), : matrix.shape[1]] = matrix
    together = known.confidences(stack)
    for place, matrix in enumerate((first, second)):
        part = together[place, : len(matrix), : matrix.shape[1]]
        np.testing.assert_allclose(part, known.confidences(matrix), atol=1e-12)
        assert together[place].sum() == pytest.approx(part.sum())


# ---- JSON


@settings(max_examples=30, deadline=None)
@given(known=calibrations)
def test_a_calibration_comes_back_from_json(known):
    assert Calibration.from_json(orjson.loads(orjson.dumps(known.to_json())), "f") == known


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sharpness": 0}, "sharpness"),
        ({"sharpness": 1e9}, "sharpness"),
        ({"sharpness": float("nan")}, "sharpness"),
        ({"sharpness": "8"}, "sharpness"),
        ({"sharpness": None}, "sharpness"),
        ({"sharpness": [8]}, "sharpness"),
        ({"level": True}, "level"),
        ({"level": float("-inf")}, "level"),
        ({"level": 2.1}, "level"),
        ({"documents": 3.5}, "documents"),
        ({"documents": -1}, "documents"),
        ({"documents": 10**30}, "documents"),
        ({"table": []}, "table"),
    ],
)
def test_hostile_json_is_refused_by_file_and_field(changes, field):
    with pytest.raises(SightlineError, match=rf"^m/config\.json: calibration\.{field} is"):
        Calibration.from_json({**SOME.to_json(), **changes}, "m/config.json")


@pytest.mark.parametrize("record", [[], "x", 1, True])
def test_a_calibration_that_is_no_object_is_refused(record):
    with pytest.raises(SightlineError, match="calibration is not a JSON object"):
        Calibration.from_json(record, "m/config.json")
    missing = {key: value for key, value in SOME.to_json().items() if key != "level"}
    with pytest.raises(SightlineError, match=r"calibration\.level is missing"):
        Calibration.from_json(missing, "m/config.json")


# ---- estimation in worlds whose truth is known


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def world(rng, documents, *, linked=4, distractors=3, likeness=1.0, topics=0, size=24):
    """Documents with true links 0-0, 1-1, ...; the rest of sentences and images belong nowhere."""
    themes = rng.normal(size=(topics or 1, size))
    result = []
    for place in range(documents):
        count = linked + distractors
        sentence_SE = rng.normal(size=(count, size))
        image_VE = rng.normal(size=(count, size))
        image_VE[:linked] += likeness * sentence_SE[:linked]
        if topics:
            theme = 1.5 * themes[rng.integers(topics)]
            sentence_SE += theme
            image_VE += theme
        names = frozenset([f"document {place}"])
        result.append(EncodedDocument(unit(sentence_SE), unit(image_VE), names))
    return result


def judged(documents, known, linked, policy="assignment"):
    """Confidence and truth of all links."""
    confidences, right = [], []
    for one in documents:
        matrix = one.sentence_SE @ one.image_VE.T
        for found in with_confidence(link(matrix, policy), matrix, known):
            confidences.append(found.confidence)
            right.append(found.sentence == found.image < linked)
    return np.array(confidences), np.array(right)


def error(confidences, right):
    links = [Link(0, int(not one), 0.0, c) for c, one in zip(confidences, right, strict=True)]
    return Reliability.of_links(links, [(0, 0)]).expected_calibration_error


@pytest.fixture(scope="module")
def planted():
    """A world with distractors, calibrated on one part of it; the other part."""
    documents = world(np.random.default_rng(0), 900)
    return estimate(documents[:300], np.random.default_rng(1)), documents[300:]


@pytest.mark.parametrize("policy", POLICIES)
def test_links_are_right_as_often_as_their_confidence_says(planted, policy):
    known, documents = planted
    confidences, right = judged(documents, known, 4, policy)
    assert 0.2 < right.mean() < 0.8
    assert error(confidences, right) < 0.05
    assert confidences.mean() == pytest.approx(right.mean(), abs=0.04)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("least", [0.5, 0.7, 0.9])
def test_the_share_of_wrong_links_among_confident_ones_is_controlled(planted, policy, least):
    known, documents = planted
    confidences, right = judged(documents, known, 4, policy)
    kept = right[confidences >= least]
    assert len(kept) > 100
    # Two standard deviations of a share of so many links.
    assert kept.mean() >= least - 2 * np.sqrt(least * (1 - least) / len(kept))


def test_confidence_sorts_links_better_than_the_score(planted):
    known, documents = planted
    confidences, right = judged(documents, known, 4)
    scores = np.array(
        [found.score for one in documents for found in link(one.sentence_SE @ one.image_VE.T)]
    )
    most = len(scores) // 3

    def precision(values):
        return right[np.argsort(-values)[:most]].mean()

    assert precision(confidences) >= precision(scores)


@pytest.mark.parametrize(("linked", "distractors"), [(12, 9), (2, 1)])
def test_documents_of_another_size_than_those_it_was_estimated_from(planted, linked, distractors):
    known, _ = planted
    documents = world(np.random.default_rng(5), 300, linked=linked, distractors=distractors)
    assert error(*judged(documents, known, linked)) < 0.08


def test_where_nothing_belongs_together_nothing_is_sure():
    documents = world(np.random.default_rng(2), 300, linked=0, distractors=6)
    known = estimate(documents[:150], np.random.default_rng(1))
    confidences, _ = judged(documents[150:], known, 0)
    assert confidences.mean() < 0.1
    assert (confidences >= 0.5).mean() < 0.01


def test_a_common_topic_is_no_link():
    documents = world(np.random.default_rng(3), 400, linked=0, distractors=6, topics=8)
    own = np.mean([one.sentence_SE @ one.image_VE.T for one in documents])
    foreign = np.mean([documents[0].sentence_SE @ one.image_VE.T for one in documents[1:]])
    assert own > foreign + 0.3  # chance, as pairs across documents have it, is far lower
    known = estimate(documents[:200], np.random.default_rng(1))
    confidences, _ = judged(documents[200:], known, 0)
    assert confidences.mean() < 0.2
    assert (confidences >= 0.5).mean() < 0.02


def test_links_within_a_common_topic_are_found():
    documents = world(np.random.default_rng(4), 600, topics=8, likeness=1.5)
    known = estimate(documents[:300], np.random.default_rng(1))
    confidences, right = judged(documents[300:], known, 4)
    assert error(confidences, right) < 0.08
    assert right[confidences >= 0.8].mean() > 0.8


def test_the_same_seed_gives_the_same_calibration():
    documents = world(np.random.default_rng(0), 40)
    first, second = (estimate(documents, np.random.default_rng(7)) for _ in range(2))
    assert first == second
    assert first.documents == 40


def test_too_few_documents_are_refused_with_the_reason():
    documents = world(np.random.default_rng(0), 29)
    empty = EncodedDocument(np.empty((0, 24), np.float32), documents[0].image_VE, frozenset())
    with pytest.raises(SightlineError, match=r"at least 30 documents .* there are 29"):
        estimate([*documents, empty], np.random.default_rng(0))


def test_documents_that_share_an_image_or_a_sentence_are_not_mixed():
    shared = [replace(one, names=frozenset(["x"])) for one in world(np.random.default_rng(0), 30)]
    with pytest.raises(SightlineError, match="share neither images nor sentences"):
        estimate(shared, np.random.default_rng(0))
    # All but two share an image, so that there is one kind of mixture.
    shared[:2] = world(np.random.default_rng(1), 2)
    partners = set(partners_of(shared, np.random.default_rng(0)))
    assert partners
    assert all(min(pair) < 2 for pair in partners)


def test_documents_of_one_sentence_and_one_image():
    documents = world(np.random.default_rng(0), 400, linked=1, distractors=0, likeness=1.5)
    known = estimate(documents[:200], np.random.default_rng(1))
    confidences, right = judged(documents[200:], known, 1)
    # All are right; they are told from pairs across documents.
    assert right.all()
    assert confidences.mean() > 0.5


# ---- models


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, textbooks):
    """60 sections without a split, and their features."""
    folder = tmp_path_factory.mktemp("corpus")
    chosen = [replace(one, split=None) for one in islice(read(textbooks), 60)]
    write_jsonl(chosen, folder / "documents.jsonl")
    shutil.copytree(textbooks / "features", folder / "features")
    return folder


@pytest.fixture(scope="module")
def model(corpus):
    """A model that has learned nothing; what confidences it gives does not matter here."""
    store = FeatureStore.open(corpus / "features")
    chosen = Settings(dimension=8, sentence_encoder="attention")
    words = {
        word for one in read(corpus) for sentence in one.sentences for word in sentence.split()
    }
    vocabulary = Vocabulary(("<unk>", *sorted(word for word in words if word.islower())))
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(len(vocabulary), 300)).astype(np.float32)
    encoders = Encoders(embedding, store.dimension, chosen, seed=1)
    weights = {name: weight.numpy() for name, weight in encoders.state_dict().items()}
    weights["sentence.embedding"] = embedding
    return LinkModel(chosen, vocabulary, weights, store.backbone, {"corpus": "sections"})


def test_a_calibrated_model_gives_links_a_confidence(model, corpus, tmp_path):
    document = next(iter(read(corpus)))
    assert {one.confidence for one in model.link(document)} == {None}
    calibrated(model, SOME).save_pretrained(tmp_path / "m")
    loaded = LinkModel.from_pretrained(tmp_path / "m")
    assert loaded.calibration == SOME
    confidences = SOME.confidences(loaded.similarity_matrix(document))
    links = loaded.link(document, policy="dense")
    assert links
    for one in links:
        assert one.confidence == pytest.approx(confidences[one.sentence, one.image])


@pytest.mark.parametrize("policy", POLICIES)
def test_link_records_have_the_confidences_of_the_model(model, corpus, policy):
    known = calibrated(model, SOME)
    documents = list(islice(read(corpus), 20))
    images = StoredImages(FeatureStore.open(corpus / "features"))
    records = list(link_records(known, documents, images, LinkChoices(policy)))
    seen = 0
    for document, record in zip(documents, records, strict=True):
        found = {(one["sentence"], one["image"]): one["confidence"] for one in record["links"]}
        for one in known.link(document, policy):
            assert found[one.sentence, one.image] == pytest.approx(one.confidence, abs=1e-6)
            seen += 1
    assert seen == sum(len(record["links"]) for record in records) > 20
    middle = float(np.median([c["confidence"] for r in records for c in r["links"]]))
    sure = LinkChoices(policy, min_confidence=middle)
    kept = list(link_records(known, documents, images, sure))
    assert [r["links"] for r in kept] == [
        [one for one in r["links"] if one["confidence"] >= middle] for r in records
    ]
    assert 0 < sum(len(r["links"]) for r in kept) < seen


def test_evaluation_says_how_far_confidences_are_off(model, corpus):
    assert "calibration_error" not in evaluate(model, corpus, split=None)
    never = Calibration(sharpness=8.0, level=2.0, documents=50)
    scores = evaluate(calibrated(model, never), corpus, split=None)
    images = StoredImages(FeatureStore.open(corpus / "features"))
    right = [
        [one["sentence"], one["image"]] in [list(pair) for pair in document.links]
        for document, record in zip(
            read(corpus), link_records(model, read(corpus), images), strict=True
        )
        for one in record["links"]
    ]
    # Confidences of nearly 0 are off by the share of links that are right.
    assert scores["calibration_error"] == pytest.approx(100 * np.mean(right), abs=1.0)


def test_reliability_counts_by_bins():
    links = [
        Link(0, 0, 0.1, 0.05),
        Link(1, 1, 0.1, 0.15),
        Link(2, 2, 0.1, 1.0),
        Link(3, 3, 0, 0.95),
    ]
    one = Reliability.of_links(links, [(2, 2), (3, 3), (1, 0)])
    assert one.links.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert one.right.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert one.expected_calibration_error == pytest.approx((0.05 + 0.15 + 0.05) / 4)
    none = Reliability.of_links([], [])
    assert none.expected_calibration_error is None
    assert Reliability.total([one, none, one]).links.sum() == 8


def test_training_ends_by_calibrating_on_the_validation_documents(textbooks, tmp_path):
    chosen = [
        document
        for split, count in (("train", 20), ("val", 31))
        for document in islice(read(textbooks).documents(split), count)
    ]
    write_jsonl(chosen, tmp_path / "documents.jsonl")
    shutil.copytree(textbooks / "features", tmp_path / "features")
    recipe = Settings(
        dimension=8, sentence_encoder="attention", epochs=1, negative_documents=5, minimum_count=1
    )
    train(read(tmp_path), tmp_path / "m", recipe)
    assert LinkModel.from_pretrained(tmp_path / "m").calibration.documents == 31


def test_a_damaged_calibration_is_refused_by_name(model, tmp_path):
    calibrated(model, SOME).save_pretrained(tmp_path / "m")
    file = tmp_path / "m" / "config.json"
    config = orjson.loads(file.read_bytes())
    config["calibration"]["level"] = "high"
    file.write_bytes(orjson.dumps(config))
    with pytest.raises(SightlineError, match=r"config\.json: calibration\.level is 'high'"):
        LinkModel.from_pretrained(tmp_path / "m")


def test_the_page_weighs_links_by_confidence():
    shown = ShownArticle("A page", (), (), (), (Link(0, 0, 0.4, 0.83),))
    assert shown.measure == "confidence"
    assert replace(shown, links=(Link(0, 0, 0.4),)).measure == "score"
    assert "confidence" in render_article(replace(shown, links=()))


# ---- the command line


def test_calibrate_then_link_by_confidence(model, corpus, tmp_path):
    folder = tmp_path / "m"
    model.save_pretrained(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    _, words = sightline(
        "link", corpus, "--model", folder, "--min-confidence", 0.1, "-o", tmp_path / "l", expect=1
    )
    assert "not calibrated" in words
    out, words = sightline("calibrate", folder, corpus, "--json")
    known = Calibration.from_json(orjson.loads(out), "stdout")
    assert known.documents == 60
    assert "calibrated on 60 documents" in words
    changed = [name for name, data in before.items() if (folder / name).read_bytes() != data]
    assert changed == ["config.json"]
    assert LinkModel.from_pretrained(folder).notes == {
        "corpus": "sections", "calibration": known.to_json(),
    }  # fmt: skip
    out, _ = sightline("link", corpus, "--model", folder, "--policy", "dense")
    confidences = [
        one["confidence"] for line in out.splitlines() for one in orjson.loads(line)["links"]
    ]
    assert len(confidences) > 500
    assert all(0 <= one <= 1 for one in confidences)
    out, _ = sightline("pairs", corpus, "--model", folder, "--min-confidence", 0.01, "-o",
                       tmp_path / "pairs.jsonl", "--json")  # fmt: skip
    assert "links below the confidence" in orjson.loads(out)["left_out"]


def test_calibrate_writes_elsewhere_and_refuses_what_it_cannot_use(model, corpus, tmp_path):
    folder, other = tmp_path / "m", tmp_path / "other"
    model.save_pretrained(folder)
    before = (folder / "config.json").read_bytes()
    out, _ = sightline("calibrate", folder, corpus, "-o", other, "--seed", 3, "--json")
    assert (folder / "config.json").read_bytes() == before
    assert LinkModel.from_pretrained(other).calibration.to_json() == orjson.loads(out)
    lines = (corpus / "documents.jsonl").read_bytes().splitlines(keepends=True)
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(lines[:10]))
    features = ["--features", corpus / "features"]
    _, words = sightline("calibrate", folder, few, *features, expect=1)
    assert "at least 30 documents" in words and "there are 10" in words
    _, words = sightline("calibrate", folder, corpus, "--split", "dev", expect=1)
    assert "no document has the split 'dev'" in words
    _, words = sightline("calibrate", "nothing", corpus, expect=1)
    assert "nothing is not a model folder" in words
    _, words = sightline("calibrate", "default", corpus, expect=2)
    assert "-o" in words
    assert (folder / "config.json").read_bytes() == before


WRITER = """
import sys
from pathlib import Path
from sightline.calibration import store_calibration
from sightline.confidence import Calibration
print("ready", flush=True)
while True:
    for level in range(-9, 20):
        store_calibration(Path(sys.argv[1]), Calibration(5.0, level / 10, 40))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_calibrate_writes_over_no_files_of_another_kind(model, corpus, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("Mine.")
    model.save_pretrained(tmp_path / "m")
    _, words = sightline("calibrate", tmp_path / "m", corpus, "-o", folder, expect=1)
    assert "holds a README.md already" in words
    assert [file.name for file in folder.iterdir()] == ["README.md"]


def test_a_killed_calibration_leaves_a_whole_model(model, tmp_path):
    folder = tmp_path / "m"
    model.save_pretrained(folder)
    store_calibration(folder, SOME)
    seen = set()
    for wait in (0.02, 0.05, 0.11):
        command = [sys.executable, "-c", WRITER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as writer:
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(wait)
            writer.kill()
        seen.add(LinkModel.from_pretrained(folder).calibration.sharpness)
    assert seen <= {5.0, 8.0}


# ---- the bundled model


@pytest.mark.skipif(not (BUNDLED / "config.json").exists(), reason="the model is not bundled yet")
def test_the_bundled_model_keeps_its_promise_on_held_out_documents(shared_data):
    model = LinkModel.from_pretrained("default")
    assert model.calibration is not None
    store = FeatureStore.open(shared_data / "coco" / "features")
    confidences, right = [], []
    documents = list(islice(read(shared_data / "coco", split="test"), 300))
    matrices = model.similarity_matrices(documents, store)
    for document, matrix in zip(documents, matrices, strict=True):
        for one in with_confidence(link(matrix), matrix, model.calibration):
            confidences.append(one.confidence)
            right.append((one.sentence, one.image) in document.links)
    confidences, right = np.array(confidences), np.array(right)
    assert error(confidences, right) < 0.08
    for least in (0.5, 0.7, 0.8):
        assert right[confidences >= least].mean() >= least
