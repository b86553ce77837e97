"""MSCOCO documents: the paper's recipe, on made-up annotations and on COCO's own captions."""

from collections import Counter, defaultdict

import orjson
import pytest
from counted_corpora import corpus_statistics
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.image_folders import ImageFolder
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers.mscoco import read_mscoco
from sightline.splits import split_size

PAPER = {"seed": 1, "validation": 0.2, "test": 0.2, "versions": 5, "images": None}


def coco(path, captions):
    """A caption file in COCO's schema: the number of captions of each image, by its id.

    The fields are those of cocodataset.org's "Data format" page for captions.
    """
    images = [
        {"id": i, "file_name": f"{i:012d}.jpg", "width": 640, "height": 480, "license": 3}
        for i in captions
    ]
    annotations = [
        {"image_id": i, "id": 10 * i + n, "caption": f"Caption {n} of {i}."}
        for i, count in captions.items()
        for n in range(count)
    ]
    info = {"info": {}, "licenses": [], "images": images, "annotations": annotations}
    path.write_bytes(orjson.dumps(info))
    return path


def build(*files, problems=None, dropped=None, **options):
    counts = Counter() if dropped is None else dropped
    problems = problems or Problems(strict=True)
    return list(read_mscoco(files, **{**PAPER, **options}, problems=problems, dropped=counts))


def about(caption):
    """The image that a made-up caption was written about."""
    return f"{int(caption.rstrip('.').rpartition(' ')[2]):012d}.jpg"


def check(documents):
    """What must hold of every corpus that is built from made-up annotations."""
    images_of = defaultdict(set)
    for document in documents:
        images_of[document.split].update(document.images)
    splits = list(images_of.values())
    assert sum(map(len, splits)) == len(set().union(*splits)), "an image is in two splits"
    for document in documents:
        assert len(document.images) == len(set(document.images)) == 10
        assert len(document.sentences) == 10
        assert len(document.links) == 5
        linked = {sentence for sentence, _ in document.links}
        assert len(linked) == len({image for _, image in document.links}) == 5
        for sentence, image in document.links:
            assert about(document.sentences[sentence]) == document.images[image]
        distractors = [text for n, text in enumerate(document.sentences) if n not in linked]
        assert len(set(distractors)) == 5
        for text in distractors:
            assert about(text) not in document.images
            assert about(text) in images_of[document.split]


@settings(max_examples=30, deadline=None)
@given(
    captions=st.dictionaries(st.integers(1, 500), st.integers(1, 7), min_size=100, max_size=160),
    seed=st.integers(0, 3),
    versions=st.integers(1, 6),
)
def test_every_document_is_as_the_paper_builds_it(tmp_path_factory, captions, seed, versions):
    file = coco(tmp_path_factory.mktemp("coco") / "captions.json", captions)
    documents = build(file, seed=seed, versions=versions)
    check(documents)
    groups = len(captions) // 2 // 5
    assert corpus_statistics(documents).density == 0.05
    kept = Counter(d.id.rpartition("-v")[0] or d.id for d in documents)
    assert len(kept) == groups
    assert len({document.id for document in documents}) == len(documents)
    # A training document has a version for each caption of its least described true image.
    for document in documents:
        true = [int(document.images[image].removesuffix(".jpg")) for _, image in document.links]
        fewest = min(captions[image] for image in true)
        name = document.id.rpartition("-v")[0] or document.id
        assert kept[name] == (min(versions, fewest) if document.split == "train" else 1)


def test_versions_use_each_caption_of_the_true_images_once(tmp_path):
    documents = build(coco(tmp_path / "c.json", dict.fromkeys(range(1, 201), 5)))
    versions = defaultdict(list)
    for document in documents:
        if document.split == "train":
            versions[document.id.rpartition("-v")[0]].append(document)
    assert len(versions) == 12
    for group in versions.values():
        assert [document.extra["version"] for document in group] == list(range(5))
        assert len({frozenset(document.images) for document in group}) == 1
        own = [document.sentences[s] for document in group for s, _ in document.links]
        assert len(own) == len(set(own)) == 25
        # Fresh distractors and a fresh order each time.
        assert len({document.sentences for document in group}) == 5
        assert len({document.images for document in group}) == 5


def test_places_tell_nothing(tmp_path):
    """Over many documents a linked sentence, or image, stands in each place equally often."""
    documents = build(coco(tmp_path / "c.json", dict.fromkeys(range(1, 4001), 5)))
    for side in (0, 1):
        places = Counter(link[side] for document in documents for link in document.links)
        assert len(documents) == 1360
        assert all(0.9 < places[place] / (len(documents) / 2) < 1.1 for place in range(10))


def test_shape_of_cocos_validation_file(tmp_path):
    """captions_val2017.json has 5,000 images and 25,014 captions: five or more each."""
    captions = {i: 5 + (i <= 14) for i in range(1, 5001)}
    assert sum(captions.values()) == 25_014
    dropped = Counter()
    documents = build(coco(tmp_path / "captions_val2017.json", captions), dropped=dropped)
    check(documents)
    found = corpus_statistics(documents)
    assert found.documents == {"train": 1500, "val": 100, "test": 100}
    assert found.unique_images == 5000
    assert (found.sentences.median, found.images.median, found.density) == (10, 10, 0.05)
    assert not +dropped


def test_2014_training_images_give_the_papers_number_of_documents():
    """82,783 images make 8,278 groups, which the supplement divides 4968/1655/1655."""
    groups = 82_783 // 2 // 5
    assert split_size(groups, 0.2, "val") == split_size(groups, 0.2, "test") == 1655
    assert groups - 2 * 1655 == 4968


def test_same_seed_same_documents_whatever_the_order_of_files(tmp_path):
    first = coco(tmp_path / "a.json", dict.fromkeys(range(1, 121), 5))
    second = coco(tmp_path / "b.json", dict.fromkeys(range(81, 201), 5))
    assert build(first, second) == build(second, first)
    assert build(first, second) != build(first, second, seed=2)
    assert len({image for d in build(first, second) for image in d.images}) == 200


def test_files_of_2014_and_2017_are_merged(tmp_path):
    new = coco(tmp_path / "captions_train2017.json", dict.fromkeys(range(1, 201), 5))
    old = orjson.loads(new.read_bytes())
    for image in old["images"]:
        image["file_name"] = "COCO_train2014_" + image["file_name"]
    (tmp_path / "captions_train2014.json").write_bytes(orjson.dumps(old))
    assert build(tmp_path / "captions_train2014.json", new) == build(new)


def test_numbers_in_place_of_shares(tmp_path):
    file = coco(tmp_path / "c.json", dict.fromkeys(range(1, 201), 1))
    found = corpus_statistics(build(file, validation=3, test=2))
    assert found.documents == {"train": 15, "val": 3, "test": 2}
    with pytest.raises(SightlineError, match="larger than the 20 documents"):
        build(file, validation=15, test=6)
    with pytest.raises(SightlineError, match=r"size 1\.5; expected a share"):
        build(file, validation=1.5)
    with pytest.raises(SightlineError, match="only 0 captions"):
        build(file, validation=1)


def test_captions_without_tokens_and_images_without_captions_are_dropped(tmp_path):
    file = coco(tmp_path / "c.json", {**dict.fromkeys(range(1, 101), 2), 101: 0})
    content = orjson.loads(file.read_bytes())
    content["annotations"][0]["caption"] = " \n"
    file.write_bytes(orjson.dumps(content))
    dropped = Counter()
    check(build(file, dropped=dropped))
    assert +dropped == {"captions without tokens": 1, "images without captions": 1}


BAD = [
    ("images", {"id": "1", "file_name": "a.jpg"}, "id", "found a string"),
    ("images", {"id": 1}, "file_name", "no such key"),
    ("images", 7, None, "found a whole number"),
    ("annotations", {"id": 1, "image_id": 1}, "caption", "no such key"),
    ("annotations", {"id": 1, "image_id": 1, "caption": None}, "caption", "found null"),
    ("annotations", {"id": 1, "image_id": 9999, "caption": "A cat."}, "image_id", "9999"),
    ("annotations", {"id": 10, "image_id": 1, "caption": "A cat."}, "id", "another caption"),
]


@pytest.mark.parametrize(("part", "record", "field", "reason"), BAD)
def test_bad_records_are_counted_and_skipped(tmp_path, part, record, field, reason):
    file = coco(tmp_path / "c.json", dict.fromkeys(range(1, 101), 2))
    good = build(file)
    content = orjson.loads(file.read_bytes())
    content[part].append(record)
    file.write_bytes(orjson.dumps(content))
    problems = Problems()
    assert build(file, problems=problems) == good
    (problem,) = problems.first
    assert (problem.line, problem.field) == (f"{part}[{len(content[part]) - 1}]", field)
    assert reason in problem.reason
    with pytest.raises(ProblemError):
        build(file)


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"images": {}}', b'{"images": []}', b"\xff"])
def test_a_file_of_another_kind_is_refused_with_a_sentence(tmp_path, content):
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(SightlineError, match=r"c\.json: .*(expected|not valid)"):
        build(tmp_path / "c.json")


def test_image_folder_gives_paths_that_exist(tmp_path):
    file = coco(tmp_path / "c.json", dict.fromkeys(range(1, 121), 5))
    (tmp_path / "photos" / "train2017").mkdir(parents=True)
    for i in range(1, 111):
        (tmp_path / "photos" / "train2017" / f"{i:012d}.jpg").touch()
    images = ImageFolder.open(tmp_path / "photos", tmp_path / "corpora" / "coco")
    dropped = Counter()
    documents = build(file, images=images, dropped=dropped)
    assert dropped["missing images"] == 10
    for document in documents:
        assert all((tmp_path / "corpora" / "coco" / i).resolve().is_file() for i in document.images)


def test_cocos_own_captions(shared_data):
    folder = shared_data / "coco"
    dropped = Counter()
    documents = build(folder / "captions_train.json", folder / "captions_val.json", dropped=dropped)
    images = len(orjson.loads((folder / "features" / "id2row.json").read_bytes()))
    found = corpus_statistics(documents)
    assert found.documents == {"train": 1740, "val": 579, "test": 579}
    assert found.unique_images == 28_980 == images - dropped["images left over"]
    assert found.links == 5 * found.total
    assert found.density == 0.05
