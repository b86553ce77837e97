"""Fine-tuning the image network: what it sees, what it learns, what is kept and used again."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import orjson
import pytest
import torch
from command_server import sightline
from PIL import Image
from safetensors.numpy import load_file, save_file
from test_torch_backbones import WEIGHTS
from training_helpers import kill_after

from sightline import LinkModel, efficientnet_lite, evaluate, read
from sightline.backbones import backbone_file, load_backbone
from sightline.batches import Cut
from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.efficientnet_lite_torch import EfficientNetLite
from sightline.features import write_feature_store
from sightline.finetuning import FineTuningRun
from sightline.image_batches import DEGREES, Augmentation, augment, image_batches
from sightline.image_files import SquarePreprocessing, check_files, read_files
from sightline.link_records import link_records, open_images
from sightline.model_files import ModelError
from sightline.objective import document_similarities, loss_of
from sightline.problems import Problems, SightlineError
from sightline.readers.native import write_jsonl
from sightline.settings import Settings
from sightline.trainable_backbones import load_trainable_backbone
from sightline.training import train
from sightline.training_data import prepare

NAME = "efficientnet-lite0"
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 220)}
SHAPES = ("stripes", "squares", "plain")
SMALL = {
    "dimension": 8, "word_dimension": 8, "sentence_encoder": "attention", "minimum_count": 1,
    "negative_documents": 2, "epochs": 2, "learning_rate": 5e-3, "image_learning_rate": 1e-4,
    "finetune_images": True, "finetune_cut": 2, "finetune_images_at_once": 4, "dropout": 0.1,
}  # fmt: skip


def picture(colour, shape, rng, size=(90, 70)):
    pixels = np.full((size[1], size[0], 3), 255, np.uint8)
    pixels[:] = rng.integers(0, 255, 3)
    if shape == "stripes":
        pixels[::8] = pixels[1::8] = pixels[2::8] = COLOURS[colour]
    elif shape == "squares":
        pixels[10:50, 20:60] = COLOURS[colour]
    else:
        pixels[:] = COLOURS[colour]
    return Image.fromarray(pixels)


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory):
    """9 training and 3 validation documents of drawn images, each with its sentence."""
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "images").mkdir()
    rng = np.random.default_rng(0)
    documents = []
    for number in range(12):
        colour = list(COLOURS)[number % 3]
        sentences, images = [], []
        for place in range(3):
            shape = SHAPES[(number // 3 + place) % 3]
            images.append(f"images/{number}-{place}.png")
            picture(colour, shape, rng).save(folder / images[-1])
            sentences.append(f"{colour} {shape} of number {place}")
        links = ((0, 0), (1, 1), (2, 2))
        split = "train" if number < 9 else "val"
        documents.append(Document(f"d{number}", tuple(sentences), tuple(images), links, split))
    write_jsonl(documents, folder / "documents.jsonl")
    return folder


@pytest.fixture(scope="module")
def few_documents(corpus_folder, tmp_path_factory):
    """3 training and 3 validation documents of the corpus."""
    folder = tmp_path_factory.mktemp("few")
    few = [d for d in read(corpus_folder) if d.id in ("d0", "d1", "d2", "d9", "d10", "d11")]
    write_jsonl(few, folder / "documents.jsonl")
    (folder / "images").symlink_to(corpus_folder / "images")
    return folder


def run(folder, output, resume=False, **changes):
    settings = Settings(**{**SMALL, **changes})
    return train(read(folder), output, settings, resume=resume, workers=1)


@pytest.fixture(scope="module")
def trained(corpus_folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("run") / "m"
    run(corpus_folder, output, epochs=2)
    return output


@pytest.fixture(scope="module")
def plan(corpus_folder, tmp_path_factory):
    """A run that has not begun."""
    backbone = load_trainable_backbone()
    corpus, settings = read(corpus_folder), Settings(**SMALL, layers=2, hidden=8)
    files = check_files(corpus, backbone.open())
    data = prepare(corpus, files, settings, Problems(), lambda words: None)
    embedding = np.random.default_rng(0).normal(size=(len(data.vocabulary), 8))
    output = tmp_path_factory.mktemp("plan")
    return FineTuningRun(data, embedding.astype(np.float32), settings, output, files, backbone)


# ---- the network


def drawn_input(backbone, count=2):
    rng = np.random.default_rng(1)
    images = [picture("red", shape, rng, (300, 260)) for shape in SHAPES[:count]]
    return np.stack([backbone.preprocess(np.asarray(image)) for image in images])


def test_the_torch_network_equals_the_onnx_one(tmp_path):
    backbone = load_backbone(NAME)
    folded = efficientnet_lite.folded_weights(NAME, backbone_file(NAME)[1])
    module = EfficientNetLite(NAME, folded)
    batch = drawn_input(backbone)
    with torch.no_grad():
        found = module(torch.from_numpy(batch)).numpy()
    assert found == pytest.approx(backbone.features(batch), abs=1e-4)
    assert found.max() > 1
    # and back: the tuned file holds the very weights
    data = efficientnet_lite.write_tuned(NAME, module.folded_weights())
    again = efficientnet_lite.folded_weights(NAME, data)
    assert all(np.array_equal(again[name], weight) for name, weight in folded.items())
    (tmp_path / "tuned.onnx").write_bytes(data)
    tuned = load_backbone(NAME, tmp_path / "tuned.onnx")
    assert tuned.features(batch) == pytest.approx(found, abs=1e-4)


def test_the_torch_network_equals_the_onnx_one_on_photographs(shared_data):
    backbone = load_trainable_backbone()
    opened = backbone.open()
    files = sorted((shared_data / "guides" / "images").iterdir())[:6]
    documents = [Document("d", ("s",), tuple(file.name for file in files), folder=files[0].parent)]
    store = read_files(documents, opened)
    pixels = [opened.preprocessing.resize(np.asarray(Image.open(f).convert("RGB"))) for f in files]
    with torch.no_grad():
        found = backbone.module(backbone.inputs(np.stack(pixels))).numpy()
    inputs = backbone.inputs(np.stack(pixels)).numpy()
    assert found == pytest.approx(opened.features(inputs), abs=1e-4)
    # decoding to the size that is needed changes little
    cosine = (found * store.matrix).sum(1) / np.linalg.norm(found, axis=1)
    assert (cosine / np.linalg.norm(store.matrix, axis=1)).min() > 0.97


def test_a_file_of_another_network_is_refused(tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"\x0a\x03abc")
    with pytest.raises(SightlineError, match="is not the ONNX file of efficientnet-lite0"):
        load_trainable_backbone(NAME, tmp_path / "x.onnx")
    with pytest.raises(SightlineError, match="no backbone 'x' that can be tuned"):
        load_trainable_backbone("x")
    with pytest.raises(SightlineError, match="densenet169 comes without weights"):
        load_trainable_backbone("densenet169")


# ---- what the network sees


def test_augmentations_keep_their_ranges():
    rng = np.random.default_rng(0)
    drawn = [Augmentation.draw(rng, 256, 224) for _ in range(2000)]
    angles = np.array([one.angle for one in drawn])
    assert -DEGREES <= angles.min() < -19 and 19 < angles.max() <= DEGREES
    for side in ("left", "top"):
        assert {getattr(one, side) for one in drawn} == set(range(33))
    assert 0.45 < np.mean([one.flip for one in drawn]) < 0.55


def test_augment_mirrors_turns_and_crops():
    rng = np.random.default_rng(0)
    square = np.kron(rng.integers(0, 255, (16, 16, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    plain = Augmentation(flip=False, angle=0.0, left=5, top=9)
    assert np.array_equal(augment(square, plain, 224), square[9:233, 5:229])
    mirrored = augment(square, replace(plain, flip=True), 224)
    assert np.array_equal(mirrored, square[:, ::-1][9:233, 5:229])
    whole = Augmentation(flip=False, angle=20.0, left=0, top=0)
    turned = np.asarray(Image.fromarray(square).rotate(-20, Image.Resampling.BILINEAR))
    found = augment(square, whole, 256)
    assert np.abs(found[64:192, 64:192].astype(int) - turned[64:192, 64:192]).max() <= 1
    # nothing empty comes in: what lies beyond the edge repeats it
    assert augment(np.full((256, 256, 3), 200, np.uint8), whole, 224).min() == 200


def test_documents_are_cut_to_a_random_choice_in_training_only(plan):
    training = plan.data.training
    documents = np.arange(3)
    assert training.batch(documents).images_D.tolist() == [3, 3, 3]
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        batch = training.batch(documents, cut=Cut(2, rng))
        assert batch.sentences_D.tolist() == batch.images_D.tolist() == [2, 2, 2]
        assert len(batch.sentences.lengths) == len(batch.image_rows) == 6
        rows = batch.image_rows.reshape(3, 2)
        assert (rows[:, 0] < rows[:, 1]).all()
        assert (rows // 3 == np.arange(3)[:, None]).all()
        seen |= {tuple(row) for row in rows.tolist()}
    assert len(seen) == 9
    uncut = training.batch(documents, cut=Cut(3, rng))
    assert uncut.image_rows.tolist() == training.batch(documents).image_rows.tolist()
    assert Settings().finetune_cut == 10
    for batch in plan.batches():
        assert batch.pixels.shape == (6, 224, 224, 3)


def test_epochs_differ_and_are_repeated_whatever_the_number_of_workers(plan):
    first = [batch.pixels for batch in plan.batches()]
    assert len(first) == 3
    pools = []
    for workers in (1, 3):
        with DecodePool(workers) as plan.pool:
            pools.append([batch.pixels for batch in plan.batches()])
        plan.pool = None
    plan.state.epoch = 1
    second = [batch.pixels for batch in plan.batches()]
    plan.state.epoch = 0
    for same in pools:
        assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_evaluation_sees_the_middle_of_the_square_and_nothing_random(plan):
    opened = plan.backbone.open()
    assert isinstance(opened.preprocessing, SquarePreprocessing)
    image = Image.open(plan.files.files[0]).convert("RGB")
    expected = np.asarray(image.resize((256, 256), Image.Resampling.BICUBIC))[16:240, 16:240]
    assert np.array_equal(opened.preprocessing.resize(np.asarray(image)), expected)
    losses = {plan.validation_loss() for _ in range(2)}
    assert len(losses) == 1
    row = plan.data.validation.image_rows[4]
    pixels = np.asarray(Image.open(plan.files.files[row]).convert("RGB"))
    features = opened.features(opened.preprocess(pixels)[None])[0]
    assert plan.files.vectors([row])[0] == pytest.approx(features, abs=1e-4)


def test_an_image_that_vanishes_ends_the_run_with_a_sentence(plan, tmp_path):
    files = [tmp_path / "gone.png" for _ in plan.files.files]
    batches = [plan.data.training.batch(np.arange(2))]
    rng = np.random.default_rng(0)
    with pytest.raises(SightlineError, match=r"gone\.png could be read when the run began"):
        list(image_batches(batches, files, plan.backbone.preprocessing, rng))


# ---- learning


def test_bounded_memory_gives_the_gradients_of_the_plain_way(plan):
    """Also with a last part that is not full: 6 images, 4 at once."""
    batch = next(plan.batches())
    parameters = dict(plan.encoders.named_parameters())
    plan.optimizer.zero_grad()
    loss = plan.backward(batch, torch.Generator().manual_seed(3))
    found = {name: parameter.grad.clone() for name, parameter in parameters.items()}
    plan.optimizer.zero_grad()
    features = plan.backbone.module(plan.backbone.inputs(batch.pixels))
    similarities = document_similarities(
        plan.encoders, batch, features, plan.settings, torch.Generator().manual_seed(3)
    )
    plain = loss_of(similarities, plan.settings).mean()
    plain.backward()
    assert loss == pytest.approx(float(plain.detach()), abs=1e-6)
    assert sum(name.startswith("backbone.") for name in found) > 90
    for name, parameter in parameters.items():
        largest = float(parameter.grad.abs().max())
        assert largest > 0, name
        difference = float((found[name] - parameter.grad).abs().max())
        assert difference < 1e-4 * largest + 1e-7, name


def test_the_backbone_has_a_learning_rate_of_its_own_that_falls_along(plan):
    groups = plan.optimizer.param_groups
    assert [group["lr"] for group in groups] == pytest.approx([5e-3, 1e-4])
    assert len(groups[1]["params"]) == len(list(plan.backbone.module.parameters()))
    plan._set_learning_rate(1e-3)
    assert [group["lr"] for group in groups] == pytest.approx([1e-3, 2e-5])
    plan._set_learning_rate(5e-3)


def test_the_loss_falls_and_the_backbone_has_learned(trained):
    lines = [orjson.loads(line) for line in (trained / "log.jsonl").read_bytes().splitlines()]
    start, *epochs = lines
    assert len(epochs) == 2
    assert min(e["validation_loss"] for e in epochs) < start["start"]["validation_loss"]
    assert epochs[-1]["training_loss"] < epochs[0]["training_loss"]
    assert epochs[0]["peak_memory_mb"] > 100
    model = LinkModel.from_pretrained(trained)
    before = efficientnet_lite.folded_weights(NAME, backbone_file(NAME)[1])
    after = efficientnet_lite.folded_weights(NAME, model.tuned.data)
    assert len(after) == len(before) == 98
    assert not any(np.array_equal(before[name], after[name]) for name in before)


def test_a_killed_run_goes_on_to_the_same_weights(few_documents, tmp_path):
    """kill -9 in the middle of an epoch, with a worker that decodes, then --resume with two."""
    options = ["--finetune-images", "--dimension", "8", "--epochs", "2", "--minimum-count", "1",
               "--negative-documents", "2", "--finetune-cut", "2",
               "--sentence-encoder", "attention"]  # fmt: skip
    command = ["train", str(few_documents), *options, "--workers", "1", "-o"]
    sightline(*command, tmp_path / "whole")
    # Some way into the second epoch.
    kill_after(1, command, tmp_path / "killed", further_seconds=0.2)
    assert (tmp_path / "killed" / "log.jsonl").read_bytes().count(b'"epoch"') == 1
    LinkModel.from_pretrained(tmp_path / "killed")  # the last good state is a model
    sightline(*command, tmp_path / "killed", "--resume", "--workers", "2")
    names = ["model.safetensors", "checkpoint.safetensors"]
    names += [file.name for file in (tmp_path / "whole").glob("backbone-*")]
    assert len(names) == 3
    for name in names:
        whole, parts = (tmp_path / folder / name for folder in ("whole", "killed"))
        assert whole.read_bytes() == parts.read_bytes(), name


@pytest.mark.parametrize("name", ["densenet169", "nasnet-mobile"])
def test_the_papers_networks_are_tuned_in_a_whole_run(few_documents, tmp_path, name):
    documents = [replace(d, images=d.images[:1], links=((0, 0),)) for d in read(few_documents)]
    write_jsonl(documents, tmp_path / "documents.jsonl")
    (tmp_path / "images").symlink_to(few_documents / "images")
    weights = tmp_path / f"{name}.safetensors"
    save_file(WEIGHTS[name], weights)
    backbone = load_trainable_backbone(name, weights)
    settings = Settings(**{**SMALL, "epochs": 1, "finetune_cut": 1})
    train(read(tmp_path), tmp_path / "m", settings, backbone=backbone, workers=1)
    model = LinkModel.from_pretrained(tmp_path / "m")
    assert model.backbone == name
    assert model.tuned.file.endswith(".safetensors")
    tuned = load_file(tmp_path / "m" / model.tuned.file)
    assert any(not np.array_equal(tuned[key], WEIGHTS[name][key]) for key in tuned)
    scores = evaluate(model, tmp_path, "val")
    assert scores["documents"] == 3


def test_documents_with_unreadable_images_are_reported_and_skipped(corpus_folder, tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "images").symlink_to(corpus_folder / "images")
    (folder / "broken.png").write_bytes(b"not an image")
    documents = list(read(corpus_folder))
    documents[0] = replace(documents[0], images=("broken.png", "images/0-1.png"), links=None)
    documents[1] = replace(documents[1], images=("absent.png",), links=None)
    write_jsonl(documents, folder / "documents.jsonl")
    problems, corpus = Problems(), read(folder)
    files = check_files(corpus, load_trainable_backbone().open())
    data = prepare(corpus, files, Settings(**SMALL), problems, lambda words: None)
    assert [(p.line, p.field) for p in problems.first] == [("d0", "images[0]"), ("d1", "images[0]")]
    assert "'broken.png': The content is not that of any known" in problems.first[0].reason
    assert "no such file" in problems.first[1].reason
    assert data.training.ids == [f"d{number}" for number in range(2, 9)]


# ---- the model folder


def test_the_saved_model_evaluates_from_image_files_as_training_did(corpus_folder, trained):
    epochs = [orjson.loads(line) for line in (trained / "log.jsonl").read_bytes().splitlines()][1:]
    best = min(epochs, key=lambda epoch: epoch["validation_loss"])
    scores = evaluate(LinkModel.from_pretrained(trained), corpus_folder, "val")
    assert scores["documents"] == 3
    assert scores["auc"] == pytest.approx(best["validation_auc"], abs=1e-6)


def test_unreadable_images_keep_their_place_in_link_records(corpus_folder, trained):
    document = next(iter(read(corpus_folder)))
    images = (document.images[0], "absent.png", document.images[2])
    model = LinkModel.from_pretrained(trained)
    source = open_images(model, read(corpus_folder))
    (record,) = link_records(model, [replace(document, images=images)], source, matrix=True)
    assert [image["status"] for image in record["images"]] == ["ok", "missing", "ok"]
    assert "no such file" in record["images"][1]["reason"]
    assert {link["image"] for link in record["links"]} <= {0, 2}
    with pytest.warns(UserWarning, match=r"'absent\.png' is missing: The file cannot be read"):
        found = model.link(replace(document, images=images))
    expected = [(one["sentence"], one["image"]) for one in record["links"]]
    assert [(one.sentence, one.image) for one in found] == expected
    with pytest.raises(SightlineError, match=r"'absent\.png': The file cannot be read"):
        model.similarity_matrix(replace(document, images=images))
    matrix = model.similarity_matrix(document)
    assert np.array(record["matrix"])[:, [0, 2]] == pytest.approx(matrix[:, [0, 2]], abs=1e-5)


def test_linking_from_image_files_does_not_load_torch(corpus_folder, trained, tmp_path):
    code = (
        "import sys\nfrom sightline.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "assert 'torch' not in sys.modules"
    )
    output = tmp_path / "links.jsonl"
    arguments = ["link", corpus_folder, "--model", trained, "--split", "val", "-o", output]
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True)
    records = [orjson.loads(line) for line in output.read_bytes().splitlines()]
    statuses = [image["status"] for record in records for image in record["images"]]
    assert statuses == ["ok"] * 9
    assert any(record["links"] for record in records)


def test_features_of_another_backbone_are_refused(corpus_folder, trained, tmp_path):
    model = LinkModel.from_pretrained(trained)
    backbone = load_backbone(NAME)
    ids = [image for document in read(corpus_folder) for image in document.images]
    vectors = np.ones((len(ids), 1280), np.float32)
    write_feature_store(tmp_path / "f", NAME, ids, vectors, backbone.manifest())
    with pytest.raises(SightlineError, match="has an image network of its own"):
        evaluate(model, corpus_folder, "val", tmp_path / "f")
    write_feature_store(tmp_path / "f", NAME, ids, vectors, model.image_backbone.manifest())
    assert evaluate(model, corpus_folder, "val", tmp_path / "f")["documents"] == 3


def test_a_folder_whose_backbone_is_missing_or_another_is_refused(trained, tmp_path):
    model = LinkModel.from_pretrained(trained)
    model.save_pretrained(tmp_path / "m")
    (file,) = (tmp_path / "m").glob("backbone-*.onnx")
    data = file.read_bytes()
    file.write_bytes(data[:-1] + b"x")
    with pytest.raises(ModelError, match="is not the backbone that model"):
        LinkModel.from_pretrained(tmp_path / "m")
    file.unlink()
    with pytest.raises(ModelError, match=r"backbone-.* is missing"):
        LinkModel.from_pretrained(tmp_path / "m")


def test_a_run_on_other_images_does_not_resume(corpus_folder, trained, tmp_path):
    (tmp_path / "m").mkdir()
    for file in trained.iterdir():
        (tmp_path / "m" / file.name).write_bytes(file.read_bytes())
    folder = tmp_path / "c"
    (folder / "images").mkdir(parents=True)
    for file in (corpus_folder / "images").iterdir():
        (folder / "images" / f"x{file.name}").write_bytes(file.read_bytes())
    text = (corpus_folder / "documents.jsonl").read_text().replace("images/", "images/x")
    (folder / "documents.jsonl").write_text(text)
    with pytest.raises(SightlineError, match="other settings or another corpus"):
        run(folder, tmp_path / "m", epochs=4, resume=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--finetune-images", "--features", "x"], "leave --features out"),
        (["--backbone-weights", "x"], "for --finetune-images only"),
    ],
)
def test_options_that_do_not_go_together(corpus_folder, tmp_path, options, words):
    from typer.testing import CliRunner

    from sightline.cli import app

    arguments = ["train", str(corpus_folder), "-o", str(tmp_path / "m"), *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


def test_a_model_tuned_from_an_unknown_network_is_refused(trained, tmp_path):
    model = replace(LinkModel.from_pretrained(trained), backbone="resnet")
    model.save_pretrained(tmp_path / "m")
    loaded = LinkModel.from_pretrained(tmp_path / "m")
    with pytest.raises(SightlineError, match="no backbone 'resnet'"):
        _ = loaded.image_backbone
