"""Links of many documents at once are those of `linking.link`, one document at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded_corpus import records, tiny_model

from sightline import bulk_linking, link_records
from sightline.bulk_linking import link_block, links_in_order, similarity_blocks
from sightline.documents import document_from_record
from sightline.features import FeatureStore, write_feature_store
from sightline.image_features import StoredImages
from sightline.linking import LinkChoices, link

POLICIES = ["assignment", "dense", "top-k", "threshold", "mmc4"]


def documents(rng, count, most=12):
    sentences_D, images_D = rng.integers(0, most, (2, count))
    vectors = [rng.normal(size=(n.sum(), 5)).astype(np.float32) for n in (sentences_D, images_D)]
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors]
    return *unit, sentences_D, images_D


def one_by_one(sentence_NE, image_ME, sentences_D, images_D):
    sentences, images = (
        np.split(sentence_NE, np.cumsum(sentences_D)),
        np.split(image_ME, np.cumsum(images_D)),
    )
    return [s @ v.T for s, v in zip(sentences[:-1], images[:-1], strict=True)]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    policy=st.sampled_from(POLICIES),
    max_links=st.sampled_from(["all", "half", 1, 3, 10**30]),
    compiled=st.booleans(),
)
def test_every_policy_agrees_with_the_plain_one(seed, policy, max_links, compiled):
    rng = np.random.default_rng(seed)
    many = documents(rng, 20)
    found = [
        (block, link_block(block, policy, max_links, 0.1, compiled))
        for block in similarity_blocks(*many)
    ]
    links = list(links_in_order(found, 20))
    assert len(links) == 20
    for similarity_SV, ours in zip(one_by_one(*many), links, strict=True):
        plain = link(similarity_SV, policy, max_links, 0.1)
        assert [(one.sentence, one.image) for one in ours] == [(p.sentence, p.image) for p in plain]
        np.testing.assert_allclose([o.score for o in ours], [p.score for p in plain], atol=1e-6)


def test_blocks_hold_every_document_once_without_its_padding(monkeypatch):
    monkeypatch.setattr(bulk_linking, "_BLOCK_NUMBERS", 200)  # several blocks of one size
    many = documents(np.random.default_rng(3), 50)
    found = {}
    blocks = 0
    for block in similarity_blocks(*many):
        assert not found.keys() & block.matrices().keys()
        found |= block.matrices()
        blocks += 1
        assert block.sentences_B.max() < 2 * max(1, block.sentences_B.min())
    assert blocks > 10
    for place, similarity_SV in enumerate(one_by_one(*many)):
        if similarity_SV.size:
            np.testing.assert_allclose(found[place], similarity_SV, atol=1e-6)
        else:
            assert place not in found


@pytest.mark.parametrize("kind", ["attention", "gru"])
@pytest.mark.parametrize("policy", POLICIES)
def test_records_of_a_corpus_agree_with_the_model_document_by_document(
    tmp_path, monkeypatch, kind, policy
):
    monkeypatch.setattr(link_records, "_STORED_AT_ONCE", (7, 40, 20))
    model = tiny_model(kind)
    rng = np.random.default_rng(5)
    many = [document_from_record(record) for record in records(rng, 60, "d")]
    ids = sorted({image.removesuffix(".jpg") for d in many for image in d.images})
    vectors = rng.normal(size=(len(ids), 6)).astype(np.float32)
    write_feature_store(tmp_path / "f", "some-net", ids[:-1], vectors[:-1], {}, np.float32)
    np.lib.format.open_memmap(tmp_path / "f" / "some-net.npy", "r+")[3, 0] = np.nan
    store = FeatureStore.open(tmp_path / "f")
    statuses = set()
    found = link_records.link_records(model, many, StoredImages(store), LinkChoices(policy), True)
    for document, record in zip(many, found, strict=True):
        usable = [v for v, image in enumerate(record["images"]) if image["status"] == "ok"]
        statuses |= {image["status"] for image in record["images"]}
        assert [image["id"] for image in record["images"]] == list(document.images)
        rows = store.rows([document.images[v] for v in usable])
        alone = type(document)(
            document.id, document.sentences, tuple(document.images[v] for v in usable)
        )
        similarity_SV = model.similarity_matrix(alone, store.vectors(rows))
        matrix = np.array(record["matrix"], float).reshape(len(document.sentences), -1)
        np.testing.assert_allclose(matrix[:, usable], similarity_SV, atol=1e-6)
        plain = link(similarity_SV, policy)
        # Equal sentences of a document are worth the same, so that only the scores are sure.
        scores = [one["score"] for one in record["links"]]
        np.testing.assert_allclose(scores, [one.score for one in plain], atol=1e-6)
        for one in record["links"]:
            assert abs(matrix[one["sentence"], one["image"]] - one["score"]) < 1e-6
    assert statuses == {"ok", "missing", "undecodable"}
