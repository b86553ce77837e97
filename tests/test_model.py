"""The model folder: saved, loaded, refused when parts are missing or do not match."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import orjson
import pytest

from sightline.documents import Document
from sightline.encoders import Encoders
from sightline.features import FeatureStore, write_feature_store
from sightline.linking import link
from sightline.model import LinkModel, Member
from sightline.model_files import ModelError
from sightline.problems import SightlineError
from sightline.settings import Settings
from sightline.vocabulary import Vocabulary

WORDS = ("<unk>", "a", "dog", "cat", "runs", "sleeps", "on", "grass")


@pytest.fixture(params=["gru", "attention"])
def model(request):
    chosen = Settings(dimension=8, hidden=10, sentence_encoder=request.param, layers=2)
    embedding = np.random.default_rng(0).normal(size=(len(WORDS), 300)).astype(np.float32)
    encoders = Encoders(embedding, 6, chosen, seed=1)
    weights = {name: weight.numpy() for name, weight in encoders.state_dict().items()}
    return LinkModel(chosen, Vocabulary(WORDS), weights, "some-net", {"corpus": "pets"})


@pytest.fixture
def document():
    sentences = ("A dog runs on grass.", "A cat sleeps.", "An unknown thing!")
    return Document("pets", sentences, ("one", "two"))


@pytest.fixture
def features():
    return np.random.default_rng(1).normal(size=(2, 6)).astype(np.float32)


@pytest.fixture
def folder(model, tmp_path):
    model.save_pretrained(tmp_path / "m")
    return tmp_path / "m"


def test_a_saved_model_is_the_same_model(model, folder, document, features):
    loaded = LinkModel.from_pretrained(folder)
    assert loaded.settings == model.settings
    assert loaded.vocabulary == model.vocabulary
    assert loaded.backbone == "some-net"
    assert loaded.notes == {"corpus": "pets"}
    np.testing.assert_array_equal(
        loaded.similarity_matrix(document, features=features),
        model.similarity_matrix(document, features=features),
    )
    assert {file.name for file in folder.iterdir()} == {
        "config.json", "model.safetensors", "vocabulary.json", "README.md",
    }  # fmt: skip


def test_a_model_that_was_used_can_be_pickled(model, document, features):
    used = replace(model, backbone="efficientnet-lite0")
    expected = used.similarity_matrix(document, features)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(used.image_backbone)
    again = pickle.loads(pickle.dumps(used))
    np.testing.assert_array_equal(again.similarity_matrix(document, features), expected)
    assert again.image_backbone.name == used.image_backbone.name
    assert repr(again) == repr(used)


def test_the_similarity_matrix_is_sentences_by_images_and_cosine(model, document, features):
    matrix = model.similarity_matrix(document, features=features)
    assert matrix.shape == (3, 2)
    assert np.abs(matrix).max() <= 1 + 1e-6
    sentence = model.encode_sentences(["A cat sleeps."])[0]
    image = model.encode_images(features)[1]
    assert matrix[1, 1] == pytest.approx(float(sentence @ image), abs=1e-6)


def test_permuting_the_document_permutes_the_matrix(model, document, features):
    matrix = model.similarity_matrix(document, features=features)
    turned = Document("t", document.sentences[::-1], document.images[::-1])
    np.testing.assert_allclose(
        model.similarity_matrix(turned, features=features[::-1]), matrix[::-1, ::-1], atol=1e-6
    )


def test_other_documents_of_a_batch_change_nothing(model, document, features):
    alone = model.similarity_matrix(document, features=features)
    other = Document("o", ("A cat on a dog on a cat on a dog.",), ("x",))
    both = model.similarity_matrices([other, document], np.vstack([features[:1], features]))
    np.testing.assert_allclose(both[1], alone, atol=1e-6)


def test_links_are_the_assignment(model, document, features):
    matrix = model.similarity_matrix(document, features=features)
    assert model.link(document, features=features) == link(matrix)
    assert len(model.link(document, policy="mmc4", features=features)) == 2


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocabulary.json"])
def test_a_missing_part_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing"):
        LinkModel.from_pretrained(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_weights_cut_short_are_refused(folder, keep):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged or cut short"):
        LinkModel.from_pretrained(folder)


def test_a_vocabulary_of_another_model_is_refused(folder):
    text = (folder / "vocabulary.json").read_text().replace('"cat"', '"bat"')
    (folder / "vocabulary.json").write_text(text)
    with pytest.raises(ModelError, match="not the vocabulary"):
        LinkModel.from_pretrained(folder)


def edit_config(folder, **changes):
    file = folder / "config.json"
    config = orjson.loads(file.read_bytes())
    for key, value in changes.items():
        (config["settings"] if key in config["settings"] else config)[key] = value
    file.write_bytes(orjson.dumps(config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 9}, "call for"),
        ({"feature_dimension": 7}, r"image\.head\.0\.weight has shape"),
        ({"layers": 1}, "call for"),
        ({"layers": 3}, "layers is 3; expected 1 or 2"),
        ({"dropout": "no"}, "dropout is 'no'"),
        ({"format": 99}, "format 1"),
        ({"settings": {"surprise": 1}}, "unknown setting 'surprise'"),
        ({"settings": {"dimensions": 8}}, "Did you mean 'dimension'"),
        ({"settings": None}, "not a JSON object"),
    ],
)
def test_settings_that_do_not_match_are_refused(folder, changes, message):
    edit_config(folder, **changes)
    with pytest.raises(SightlineError, match=message):
        LinkModel.from_pretrained(folder)


def test_not_a_model_folder(tmp_path):
    with pytest.raises(ModelError, match="sightline train"):
        LinkModel.from_pretrained(tmp_path / "nothing")
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        LinkModel.from_pretrained(tmp_path)


def test_weights_that_are_not_numbers_are_refused(model, tmp_path):
    model.weights["image.head.0.bias"][2] = np.nan
    model.save_pretrained(tmp_path / "m")
    with pytest.raises(ModelError, match="NaN"):
        LinkModel.from_pretrained(tmp_path / "m")


def test_features_of_another_backbone_are_refused(model, document, tmp_path, features):
    for name, wanted in (("other-net", "come from other-net"), ("some-net", None)):
        store = tmp_path / name
        write_feature_store(store, name, ["one", "two"], features, {"backbone": name})
        opened = FeatureStore.open(store)
        if wanted:
            with pytest.raises(SightlineError, match=wanted) as refused:
                model.similarity_matrix(document, features=opened)
            # No command makes features of a network that only the user has.
            assert str(refused.value).endswith(
                "; name the features of some-net with --features DIR."
            )
            known = replace(model, backbone="densenet169")
            with pytest.raises(SightlineError, match="or extract them with --backbone densenet169"):
                known.check_features(opened)
        else:
            assert model.similarity_matrix(document, features=opened).shape == (3, 2)


def test_missing_and_broken_features_name_the_image(model, document, tmp_path, features):
    write_feature_store(tmp_path / "s", "some-net", ["one"], features[:1], {})
    with pytest.raises(SightlineError, match="'two': no row"):
        model.similarity_matrix(document, features=FeatureStore.open(tmp_path / "s"))
    features[1, 3] = np.inf
    with pytest.raises(SightlineError, match="image 1 are not all finite"):
        model.similarity_matrix(document, features=features)


def test_an_image_without_features_keeps_its_place_and_the_others_are_linked(
    model, document, tmp_path, features
):
    write_feature_store(tmp_path / "s", "some-net", ["two"], features[1:], {})
    store = FeatureStore.open(tmp_path / "s")
    with pytest.warns(UserWarning, match="1 of 2 images cannot be linked; 'one' is missing"):
        found = model.link(document, policy="mmc4", features=store)
    alone = model.link(replace(document, images=("two",)), policy="mmc4", features=store)
    assert [(one.sentence, one.image) for one in found] == [(alone[0].sentence, 1)]
    assert found[0].score == alone[0].score
    assert [image["status"] for image in found.to_dict()["images"]] == ["missing", "ok"]
    assert "1 image not read" in repr(found)


def test_links_are_chosen_by_threshold_and_confidence(model, document, features):
    dense = model.link(document, policy="dense", features=features)
    middle = sorted(one.score for one in dense)[1]
    found = model.link(document, policy="threshold", features=features, threshold=middle)
    assert [one.score for one in found] == [one.score for one in dense if one.score > middle]
    with pytest.raises(SightlineError, match="not calibrated"):
        model.link(document, "mmc4", features=features, min_confidence=0.5)


def test_one_text_is_not_taken_for_sentences(model):
    with pytest.raises(SightlineError, match="a list of sentences"):
        model.encode_sentences("A dog runs.")
    with pytest.raises(SightlineError, match="images: expected a list of texts, found one text"):
        Document("a", ("A dog.",), "dog.jpg")


def test_features_beside_the_document_are_found(model, document, tmp_path, features):
    """A document that was read from a corpus knows where its features are."""
    from sightline.corpus import read
    from sightline.readers.native import write_jsonl

    write_jsonl([document], tmp_path / "documents.jsonl")
    write_feature_store(tmp_path / "features", "some-net", ["one", "two"], features, {})
    (read_back,) = read(tmp_path)
    np.testing.assert_allclose(
        model.similarity_matrix(read_back),
        model.similarity_matrix(document, features=features),
        atol=1e-3,  # the store keeps float16
    )
    assert model.link(read_back, policy="dense")
    with pytest.raises(SightlineError, match="features"):
        model.link(document)


def test_copying_the_folder_is_enough(model, folder, tmp_path, document, features):
    shutil.copytree(folder, tmp_path / "copy")
    loaded = LinkModel.from_pretrained(tmp_path / "copy")
    assert loaded.similarity_matrix(document, features=features).shape == (3, 2)


@pytest.fixture
def joined(model):
    """A model and a second one with other words that scores along with a third of the score."""
    words = ("<unk>", "cat", "grass", "unknown")
    chosen = Settings(dimension=5, token_limit=4)
    embedding = np.random.default_rng(2).normal(size=(len(words), 300)).astype(np.float32)
    weights = {n: w.numpy() for n, w in Encoders(embedding, 6, chosen, seed=2).state_dict().items()}
    second = LinkModel(chosen, Vocabulary(words), weights, "some-net")
    return replace(model, members=(Member(second, 1 / 3),))


def test_threads_share_a_model(model, document, features):
    expected = model.link(document, features=features)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.link(document, features=features), range(100)))
    assert all(links == expected for links in found)


def test_members_share_the_score(joined, document, features):
    alone = replace(joined, members=()).similarity_matrix(document, features)
    second = joined.members[0].model.similarity_matrix(document, features)
    np.testing.assert_allclose(
        joined.similarity_matrix(document, features), 2 / 3 * alone + second / 3, atol=1e-6
    )
    lengths = np.linalg.norm(joined.encode_images(features), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)
    assert joined.encode_sentences([]).shape == (0, 13)


def test_members_are_saved_and_loaded(joined, document, features, tmp_path):
    joined.save_pretrained(tmp_path / "m")
    loaded = LinkModel.from_pretrained(tmp_path / "m")
    assert [member.share for member in loaded.members] == [1 / 3]
    np.testing.assert_array_equal(
        loaded.similarity_matrix(document, features), joined.similarity_matrix(document, features)
    )


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"../m": 0.5}, "names '../m'"),
        ({"member-1": 1.5}, "share of the score"),
        ({"member-1": True}, "share of the score"),
        ({"member-1": 0.6, "member-2": 0.5}, "nothing for the model itself"),
        ({"member-7": 0.5}, "member-7 is not a model folder"),
        (["member-1"], "not an object"),
        ({f"member-{n}": 0.01 for n in range(9)}, "at most 8"),
    ],
)
def test_members_that_cannot_be_are_refused(joined, tmp_path, members, expected):
    joined.save_pretrained(tmp_path / "m")
    config = orjson.loads((tmp_path / "m/config.json").read_bytes())
    (tmp_path / "m/config.json").write_bytes(orjson.dumps({**config, "members": members}))
    with pytest.raises(ModelError, match=expected):
        LinkModel.from_pretrained(tmp_path / "m")


def test_a_member_inside_a_member_or_of_other_features_is_refused(joined, tmp_path):
    joined.save_pretrained(tmp_path / "m")
    shutil.rmtree(tmp_path / "m/member-1")
    joined.save_pretrained(tmp_path / "m/member-1")
    with pytest.raises(ModelError, match="does not fit"):
        LinkModel.from_pretrained(tmp_path / "m")
