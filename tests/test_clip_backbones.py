"""CLIP and SigLIP folders, as backbones and as models: equal to transformers, or refused.

The folders are made here: real layers and tokenizers, tiny and with random weights.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from command_server import program
from PIL import Image

from sightline.backbone_names import open_backbone
from sightline.backbones import BackboneError, Preprocessing
from sightline.clip_backbones import is_clip_folder, load_clip_backbone
from sightline.clip_model import ClipModel
from sightline.corpus import read
from sightline.documents import Document
from sightline.extraction import extract_features
from sightline.features import FeatureStore, write_feature_store
from sightline.image_features import ImageFiles, StoredImages
from sightline.installed_packages import install_command
from sightline.link_records import link_records, open_images, open_model
from sightline.model_files import ModelError
from sightline.problems import MissingExtraError, SightlineError

torch = pytest.importorskip("torch", reason="CLIP folders need the extra hf: torch")
if find_spec("transformers") is None:
    pytest.skip("CLIP folders need the extra hf", allow_module_level=True)
spm = pytest.importorskip("sentencepiece", reason="SigLIP's tokenizer needs sentencepiece")

SIDE = 32
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SENTENCES = ("a red dog", "The CAT sits, still.", "sea", "birds fly over the green sea " * 5)
LAYERS = {"intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {"hidden_size": 16, "image_size": SIDE, "patch_size": 8, **LAYERS}
CLIP_PIXELS = {"mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]}


def hf():
    """Give transformers, which takes a second to import that not every process has to spend."""
    return import_module("transformers")


def random_weights(module):
    """Larger than those that training starts with, which give nearly equal vectors."""
    torch.manual_seed(5)
    with torch.no_grad():
        for values in module.parameters():
            if values.ndim:
                values.normal_(0, 0.7)
    return module.eval()


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    tokens = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS), ",</w>", ".</w>", "th", "the</w>"]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e</w>\n")
    settings = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    # As the first CLIP folders have it.
    processor = {
        "crop_size": SIDE, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "image_mean": CLIP_PIXELS["mean"], "image_std": CLIP_PIXELS["std"], "resample": 3,
        "size": SIDE, "feature_extractor_type": "CLIPFeatureExtractor",
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    last = len(tokens) - 1
    ends = {"bos_token_id": last - 1, "eos_token_id": last, "pad_token_id": last}
    text = {"hidden_size": 20, "vocab_size": len(tokens), "max_position_embeddings": 12, **ends}
    config = hf().CLIPConfig(
        text_config={**text, **LAYERS}, vision_config=VISION, projection_dim=10
    )
    random_weights(hf().CLIPModel(config)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def siglip_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("siglip")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([LETTERS, *(s.lower().strip(".") for s in SENTENCES)] * 3),
        model_prefix=str(folder / "spiece"), vocab_size=60, hard_vocab_limit=False,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    tokenizer = hf().SiglipTokenizer(str(folder / "spiece.model"), model_input_names=["input_ids"])
    tokenizer.save_pretrained(folder)
    half = [0.5, 0.5, 0.5]
    processor = {
        "do_convert_rgb": None, "do_normalize": True, "do_rescale": True, "do_resize": True,
        "image_mean": half, "image_std": half, "resample": 3, "rescale_factor": 1 / 255,
        "size": {"height": SIDE, "width": SIDE}, "image_processor_type": "SiglipImageProcessor",
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    text = {"hidden_size": 16, "vocab_size": len(tokenizer), "max_position_embeddings": 12}
    ends = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 1}
    config = hf().SiglipConfig(text_config={**text, **LAYERS, **ends}, vision_config=VISION)
    random_weights(hf().SiglipModel(config)).save_pretrained(folder)
    return folder


@pytest.fixture(params=["clip", "siglip"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(scope="session")
def loaded():
    return {}


@pytest.fixture
def model(folder, loaded):
    if folder not in loaded:
        loaded[folder] = ClipModel.from_pretrained(folder)
    return loaded[folder]


@pytest.fixture
def theirs(folder):
    """The network as transformers loads it."""
    kind = json.loads((folder / "config.json").read_text())["model_type"]
    return {"clip": hf().CLIPModel, "siglip": hf().SiglipModel}[kind].from_pretrained(folder)


def their_tokens(folder, sentences):
    """Tokens as the model cards say to make them."""
    tokenizer = hf().AutoTokenizer.from_pretrained(folder)
    fill = "max_length" if "Siglip" in type(tokenizer).__name__ else True
    return tokenizer(
        list(sentences), padding=fill, truncation=True, max_length=12, return_tensors="pt"
    )


def pixels(seed, height=40, width=60):
    """A smooth picture, which JPEG keeps."""
    small = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


@pytest.fixture
def corpus(tmp_path):
    """Two documents; the second image of the first is broken, the last of the second missing."""
    (tmp_path / "images").mkdir()
    for seed, name in enumerate(("a.jpg", "b.jpg", "c.png", "d.jpg")):
        Image.fromarray(pixels(seed)).save(tmp_path / "images" / name)
    broken = (tmp_path / "images" / "a.jpg").read_bytes()[:150]
    (tmp_path / "images" / "broken.jpg").write_bytes(broken)
    records = [
        {"id": "one", "sentences": SENTENCES,
         "images": ["images/a.jpg", "images/broken.jpg", "images/b.jpg", "images/c.png"]},
        {"id": "two", "sentences": SENTENCES[1::-1],
         "images": ["images/d.jpg", "images/a.jpg", "images/none.jpg"]},
    ]  # fmt: skip
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def usable(document, statuses):
    """The document without the images that cannot be read."""
    kept = [i for i, s in zip(document.images, statuses, strict=True) if s["status"] == "ok"]
    return Document(document.id, document.sentences, tuple(kept), folder=document.folder)


# ---- the backbone


def test_a_folder_is_recognised(folder, tmp_path):
    assert is_clip_folder(folder)
    assert not is_clip_folder(tmp_path)
    assert not is_clip_folder(folder / "config.json")
    for content in ('{"format": 1, "settings": {}}', "no JSON", "[]"):
        (tmp_path / "config.json").write_text(content)
        assert not is_clip_folder(tmp_path)
    with pytest.raises(ModelError, match=r"not JSON|not the configuration"):
        open_model(tmp_path)


def test_a_backbone_says_what_its_features_depend_on(folder, model):
    backbone = model.image_backbone
    kind = json.loads((folder / "config.json").read_text())["model_type"]
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert backbone.weights_sha256 == digest
    assert backbone.name == f"{kind}-{digest[:12]}"
    assert backbone.dimension == {"clip": 10, "siglip": 16}[kind]
    mean = CLIP_PIXELS["mean"] if kind == "clip" else [0.5] * 3
    scale = CLIP_PIXELS["std"] if kind == "clip" else [0.5] * 3
    assert backbone.manifest()["preprocessing"] == {
        "shorter_side": {"clip": SIDE, "siglip": None}[kind],
        "crop": SIDE,
        "interpolation": "bicubic",
        "mean": pytest.approx([255 * value for value in mean]),
        "scale": pytest.approx([255 * value for value in scale]),
        "channels": "RGB",
    }
    with pytest.raises(BackboneError, match="no class scores"):
        backbone.class_scores(np.zeros((1, backbone.dimension), np.float32))


def test_features_equal_those_of_transformers(folder, model, theirs):
    backbone = model.image_backbone
    batch = np.stack([backbone.preprocess(pixels(seed)) for seed in range(5)])
    with torch.no_grad():
        output = theirs.get_image_features(pixel_values=torch.from_numpy(batch))
        expected = getattr(output, "pooler_output", output).numpy()
    np.testing.assert_allclose(backbone.features(batch), expected, atol=1e-5)
    assert expected.std(axis=0).min() > 0.01  # the images differ
    assert backbone.features(batch[:0]).shape == (0, backbone.dimension)


@pytest.mark.parametrize(("height", "width"), [(70, 70), (32, 32), (48, 96), (90, 45), (20, 31)])
def test_preprocessing_is_that_of_transformers(folder, model, height, width):
    """To the last bit of a byte where the sides come out whole; elsewhere theirs are cut.

    Cutting what we round moves the longer side by up to a pixel, which is much of 32.
    """
    processors = pytest.importorskip("transformers.models.siglip.image_processing_pil_siglip")
    theirs = processors.SiglipImageProcessorPil
    if not model.siglip:
        module = pytest.importorskip("transformers.models.clip.image_processing_pil_clip")
        theirs = module.CLIPImageProcessorPil
    image = pixels(3, height, width)
    expected = theirs.from_pretrained(folder)(Image.fromarray(image))["pixel_values"][0]
    found = model.image_backbone.preprocess(image)
    whole = model.siglip or max(height, width) * SIDE % min(height, width) == 0
    assert np.abs(found - expected).mean() < (0.002 if whole else 0.1)


@pytest.mark.parametrize("shape", [(32, 32), (32, 50), (7, 300), (300, 7), (640, 480)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos"])
def test_squeezing_into_the_square_equals_pillow(shape, interpolation):
    image = pixels(1, *shape)
    way = Preprocessing(None, SIDE, interpolation, (0, 0, 0), (1, 1, 1))
    method = Image.Resampling[interpolation.upper()]
    # A pass at a time, as Preprocessing has it.
    expected = Image.fromarray(image).resize((SIDE, shape[0]), method).resize((SIDE, SIDE), method)
    np.testing.assert_array_equal(way.resize(image), np.asarray(expected))


def test_processor_config_of_transformers_5_and_shards_are_read(clip_folder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(clip_folder, folder)
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    processor |= {"size": {"shortest_edge": 40}, "crop_size": {"height": SIDE, "width": SIDE}}
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": processor}))
    (folder / "model.safetensors").unlink()
    whole = hf().CLIPModel.from_pretrained(clip_folder)
    whole.save_pretrained(folder, max_shard_size="10KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    backbone = open_backbone(str(folder))
    assert (backbone.preprocessing.shorter_side, backbone.preprocessing.crop) == (40, SIDE)
    joined = b"".join(shard.read_bytes() for shard in shards)
    assert backbone.weights_sha256 == hashlib.sha256(joined).hexdigest()
    batch = np.stack([backbone.preprocess(pixels(1))])
    expected = load_clip_backbone(clip_folder).features(batch)
    np.testing.assert_allclose(backbone.features(batch), expected, atol=1e-6)
    with pytest.raises(BackboneError, match="drop --weights"):
        open_backbone(str(folder), weights=shards[0])


def test_half_precision_weights_are_computed_in_float32(clip_folder, tmp_path):
    folder = tmp_path / "half"
    shutil.copytree(clip_folder, folder)
    hf().CLIPModel.from_pretrained(clip_folder).half().save_pretrained(folder)
    backbone = load_clip_backbone(folder)
    batch = np.stack([backbone.preprocess(pixels(1))])
    expected = load_clip_backbone(clip_folder).features(batch)
    assert backbone.features(batch).dtype == np.float32
    np.testing.assert_allclose(backbone.features(batch), expected, atol=0.05)


# ---- the model


def test_sentences_equal_those_of_transformers(folder, model, theirs):
    with torch.no_grad():
        output = theirs.get_text_features(**their_tokens(folder, SENTENCES))
        expected = torch.nn.functional.normalize(getattr(output, "pooler_output", output)).numpy()
    found = model.encode_sentences(SENTENCES)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert (expected @ expected.T)[0, 1] < 0.99  # the sentences differ


def test_many_sentences_keep_their_order_and_do_not_touch_each_other(model):
    rng = np.random.default_rng(0)
    many = ["".join(rng.choice([*LETTERS, " "], rng.integers(1, 30))) for _ in range(150)]
    many += ["", many[3], many[70]]
    together = model.encode_sentences(many)
    for place in (0, 3, 70, 149, 150, 151, 152):
        np.testing.assert_allclose(
            together[place], model.encode_sentences([many[place]])[0], atol=1e-5
        )
    assert model.encode_sentences([]).shape == (0, model.feature_dimension)


def test_features_that_are_no_numbers_are_refused(model):
    with pytest.raises(SightlineError, match="image 1 are not all finite"):
        model.encode_images(np.array([[0.0], [np.inf]]) * np.ones(model.feature_dimension))


def test_case_matters_to_neither_tokenizer_nor_siglip(model):
    upper, lower = model.encode_sentences(["A RED DOG", "a red dog"])
    np.testing.assert_allclose(upper, lower, atol=1e-6)


def test_siglip_2_of_a_fixed_resolution_brings_another_tokenizer(siglip_folder, tmp_path):
    """Its tokenizer is a tokenizer.json that knows no limit, and keeps capitals and a mask."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path / "siglip2"
    shutil.copytree(siglip_folder, folder)
    for name in ("spiece.model", "spiece.vocab", "tokenizer_config.json"):
        (folder / name).unlink()
    words = {word: i for i, word in enumerate(["<pad>", "<unk>", "a", "red", "dog", "Dog"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    hf().PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(folder)
    model = ClipModel.from_pretrained(folder)
    tokens = torch.tensor([[2, 3, 4] + 9 * [0], 12 * [4]])
    with torch.no_grad():
        output = hf().SiglipModel.from_pretrained(folder).get_text_features(tokens)
        expected = torch.nn.functional.normalize(getattr(output, "pooler_output", output)).numpy()
    found = model.encode_sentences(["A red Dog", "dog " * 20])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_similarities_are_the_logits_without_scale(folder, model, theirs, corpus):
    images = ("images/a.jpg", "images/b.jpg", "images/c.png")
    document = Document("d", SENTENCES, images, folder=corpus.parent)
    batch = [
        model.image_backbone.preprocess(np.asarray(Image.open(corpus.parent / image)))
        for image in images
    ]
    with torch.no_grad():
        output = theirs(
            pixel_values=torch.from_numpy(np.stack(batch)), **their_tokens(folder, SENTENCES)
        )
        logits = output.logits_per_text - getattr(theirs, "logit_bias", 0)
        expected = (logits / theirs.logit_scale.exp()).numpy()
    found = model.similarity_matrix(document)
    assert found.shape == (4, 3)
    np.testing.assert_allclose(found, expected, atol=0.02)  # the decoder resizes by itself
    vectors = model.image_backbone.features(np.stack(batch))
    np.testing.assert_allclose(model.similarity_matrix(document, vectors), expected, atol=1e-5)
    assert [(link.sentence, link.image) for link in model.link(document, "mmc4")]


def test_link_on_the_command_line_end_to_end(clip_folder, corpus, tmp_path):
    """One process, as a user starts it; the network is not at hand, nor are progress bars."""
    command = [program(), "link", str(corpus), "--model", str(clip_folder)]
    command += ["--matrix", "--policy", "mmc4", "-o", str(tmp_path / "links.jsonl")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    said = f"{tmp_path / 'links.jsonl'}: 2 documents linked, as jsonl; 2 images not read\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)
    one, two = map(json.loads, (tmp_path / "links.jsonl").read_text().splitlines())
    assert [image["status"] for image in one["images"]] == ["ok", "undecodable", "ok", "ok"]
    assert [image["status"] for image in two["images"]] == ["ok", "ok", "missing"]
    assert [image["id"] for image in one["images"]][1] == "images/broken.jpg"
    assert one["images"][1]["reason"] and two["images"][2]["reason"]
    assert one["sentences"] == list(SENTENCES)
    model = ClipModel.from_pretrained(clip_folder)
    for record, document, places in zip((one, two), read(corpus), ([0, 2, 3], [0, 1]), strict=True):
        expected = model.similarity_matrix(usable(document, record["images"]))
        matrix = np.array(record["matrix"], np.float64)
        np.testing.assert_allclose(matrix[:, places], expected, atol=1e-5)
        assert np.isnan(matrix[:, [v for v in range(matrix.shape[1]) if v not in places]]).all()
        assert {link["image"] for link in record["links"]} == set(places)
        for link in record["links"]:
            assert link["score"] == matrix[link["sentence"], link["image"]]


def test_evaluate_on_the_command_line(clip_folder, corpus, tmp_path):
    """Documents whose links are known are scored; one with a missing image is a problem."""
    folder = tmp_path / "known"
    folder.mkdir()
    (folder / "images").symlink_to(corpus.parent / "images")
    images = ["images/a.jpg", "images/b.jpg"]
    records = [
        {"id": "whole", "sentences": SENTENCES, "images": images, "links": [[0, 0]]},
        {"id": "absent", "sentences": SENTENCES, "images": ["no.jpg"], "links": [[0, 0]]},
        {"id": "unknown", "sentences": SENTENCES, "images": images},
    ]
    lines = "".join(json.dumps(record | {"split": "test"}) + "\n" for record in records)
    (folder / "documents.jsonl").write_text(lines)
    command = [program(), "evaluate", str(clip_folder), str(folder)]
    command += ["--json", "--documents", str(tmp_path / "scores.jsonl")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0
    assert "'no.jpg' is missing" in done.stderr
    scores = json.loads(done.stdout)
    assert (scores["documents"], scores["skipped"]) == (1, 2)
    (document,) = [d for d in read(folder) if d.id == "whole"]
    matrix = ClipModel.from_pretrained(clip_folder).similarity_matrix(document)
    lower = (matrix.ravel()[1:] < matrix[0, 0]).mean()
    assert scores["auc"] == pytest.approx(100 * lower)


def test_a_feature_store_gives_the_same_links_as_the_files(model, folder, corpus, tmp_path):
    opened = read(corpus)
    files = list(link_records(model, opened, open_images(model, opened), matrix=True))
    store = tmp_path / "features"  # beside the corpus, where it is found
    summary = extract_features([opened], store, open_backbone(str(folder)), workers=0)
    assert (summary.usable, summary.failed) == (4, {"missing": 1, "undecodable": 1})
    source = open_images(model, opened)
    assert isinstance(source, StoredImages)
    stored = list(link_records(model, opened, source, matrix=True))
    for of_files, of_store in zip(files, stored, strict=True):
        assert pairs(of_files) == pairs(of_store)
        np.testing.assert_allclose(
            np.array(of_files["matrix"], float), np.array(of_store["matrix"], float), atol=2e-3
        )
    document = next(iter(opened))
    seen = usable(document, files[0]["images"])
    np.testing.assert_allclose(
        model.similarity_matrix(seen, FeatureStore.open(store)),
        model.similarity_matrix(seen),
        atol=2e-3,
    )


def pairs(record):
    return [(link["sentence"], link["image"]) for link in record["links"]]


def test_features_of_another_backbone(model, corpus, tmp_path):
    """Named by the user they are refused; beside the corpus they are passed over, with a word."""
    opened, said = read(corpus), []
    vectors = np.ones((1, model.feature_dimension), np.float32)
    write_feature_store(tmp_path / "features", "another-net", ["a"], vectors, {})
    assert isinstance(open_images(model, opened, say=said.append), ImageFiles)
    assert len(said) == 1 and "another-net" in said[0] and "image files" in said[0]
    with pytest.raises(SightlineError, match="come from another-net"):
        open_images(model, opened, tmp_path / "features")
    longer = np.ones((1, model.feature_dimension + 1), np.float32)
    write_feature_store(tmp_path / "longer", model.backbone, ["a"], longer, {})
    with pytest.raises(SightlineError, match=f"have {longer.shape[1]} numbers"):
        model.similarity_matrix(next(iter(opened)), FeatureStore.open(tmp_path / "longer"))
    with pytest.raises(SightlineError, match="expects"):
        model.encode_images(longer)


def test_an_unreadable_image_is_named(model, corpus):
    with pytest.raises(SightlineError, match=r"broken.jpg' of document 'one' is undecodable"):
        model.similarity_matrix(next(iter(read(corpus))))


def test_nothing_is_fetched(folder, monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("something reaches for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert isinstance(open_model(str(folder)), ClipModel)


# ---- refused folders


def without(*names):
    def damage(folder):
        for name in names:
            (folder / name).unlink()

    return damage


def changed(name, **values):
    def damage(folder):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**content, **values}))

    return damage


def processor(**values):
    return changed("preprocessor_config.json", **values)


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def weights(change):
    def damage(folder):
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def cut_short(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-100])


REFUSED = [
    (without("model.safetensors"), "has no weights: model.safetensors is missing"),
    (pickled, "pytorch_model.bin, which can run code .* convert it once: python -c"),
    (without("preprocessor_config.json"), "preprocessor_config.json is missing"),
    (without("vocab.json"), "has no tokenizer"),
    (changed("config.json", model_type="bert"), "the model type is 'bert'; supported are clip"),
    (changed("config.json", model_type="siglip2"), "NaFlex"),
    (cut_short, "the model cannot be loaded"),
    (weights(lambda w: w.pop("visual_projection.weight")), "lacks 'visual_projection.weight'"),
    (weights(lambda w: w["visual_projection.weight"].fill_(np.nan)), "NaN or infinity"),
    (
        weights(lambda w: w.update({"visual_projection.weight": torch.zeros(3, 3)})),
        "the model cannot be loaded",
    ),
    (processor(resample=0), r"resample is 0; supported are \[1, 2, 3\]"),
    (processor(do_normalize=False), "do_normalize is False"),
    (processor(do_center_crop=False), "does not give the 32 x 32 pixels"),
    (processor(crop_size=24), "does not give the 32 x 32 pixels"),
    (processor(size={"shortest_edge": 24}), "does not give the 32 x 32 pixels"),
    (processor(size={"height": 40, "width": 40}), "does not give the 32 x 32 pixels"),
    (processor(image_mean=[1, 2]), "three numbers"),
    (processor(image_std=None), "three numbers"),
    (processor(image_std=[0, 1, 1]), "three numbers"),
    (processor(rescale_factor=0), "three numbers"),
    (lambda folder: (folder / "preprocessor_config.json").write_text("[]"), "a JSON object"),
    (lambda folder: (folder / "preprocessor_config.json").write_text("{"), "is not JSON"),
]


@pytest.mark.parametrize(("damage", "message"), REFUSED)
def test_a_bad_folder_is_refused_with_a_sentence(clip_folder, tmp_path, damage, message):
    folder = tmp_path / "bad"
    shutil.copytree(clip_folder, folder)
    damage(folder)
    with pytest.raises(BackboneError, match=message) as caught:
        open_model(folder)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tokens_that_the_network_does_not_know_are_refused(clip_folder, tmp_path):
    folder = tmp_path / "bad"
    shutil.copytree(clip_folder, folder)
    tokens = json.loads((folder / "vocab.json").read_text())
    tokens = {t: i + 9 if t.startswith("<|") else i for t, i in tokens.items()}
    (folder / "vocab.json").write_text(json.dumps(tokens))
    with pytest.raises(BackboneError, match="do not belong together"):
        ClipModel.from_pretrained(folder).encode_sentences(["a dog"])


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(BackboneError, match="is not a folder"):
        load_clip_backbone(tmp_path / "nothing")
    with pytest.raises(BackboneError, match=r"config.json is missing"):
        open_backbone(str(tmp_path))
    with pytest.raises(BackboneError, match="and CLIP or SigLIP folders"):
        open_backbone("nothing")


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_names_the_extra(clip_folder, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("hf"))):
        open_model(clip_folder)
