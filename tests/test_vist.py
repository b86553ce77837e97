"""VIST documents: DII, SIS and DII-Stress, on files in VIST's schema.

SIS: the fields are those of the genuine annotation in the measuring data. DII: no genuine file
could be had; its fields (`photo_order_in_story`, no `story_id`, tier `descriptions-in-isolation`)
are known from annotations that public loaders of the dataset quote, its shape (a fixed set of five
photos, each captioned several times) from the supplement.
"""

import random
from collections import Counter, defaultdict

import orjson
import pytest
from counted_corpora import corpus_statistics
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sightline.image_folders import ImageFolder
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers.vist import DII, SIS, read_dii_stress, read_vist, vist_files

SPLITS = ("train", "val", "test")


def dii_annotation(album, photo, order, text):
    return [
        {
            "original_text": text,
            "album_id": album,
            "photo_flickr_id": photo,
            "photo_order_in_story": order,
            "worker_id": "S8235PXB9Z3JZYL",
            "text": text.lower(),
            "tier": "descriptions-in-isolation",
        }
    ]


def sis_annotation(album, story, photo, order, text):
    return [
        {
            "original_text": text,
            "album_id": album,
            "photo_flickr_id": photo,
            "setting": "first-2-pick-and-tell",
            "worker_id": "FJROI8NWDRIPAM1",
            "story_id": story,
            "tier": "story-in-sequence",
            "worker_arranged_photo_order": order,
            "text": (text or "").lower(),
            "storylet_id": f"{story}{order}",
        }
    ]


def write(folder, tier, split, annotations):
    folder.mkdir(parents=True, exist_ok=True)
    content = {"images": [], "annotations": annotations, "albums": [], "type": tier, "info": {}}
    path = folder / f"{split}.{tier}.json"
    path.write_bytes(orjson.dumps(content))
    return path


def dii_album(album, captions=3):
    """The annotations of an album: five photos, so many captions of each, run by run."""
    return [
        dii_annotation(album, f"{album}{order}", order, f"Caption {run} of photo {album}{order}.")
        for run in range(captions)
        for order in range(5)
    ]


def dii_folder(folder, albums=(40, 6, 6), captions=3):
    for number, (split, count) in enumerate(zip(SPLITS, albums, strict=True)):
        annotations = [
            annotation
            for album in range(count)
            for annotation in dii_album(f"{number + 1}{album:03d}", captions)
        ]
        write(folder, DII, split, annotations)
    return folder


def read(folder, tier, images=None, problems=None, dropped=None):
    problems = problems or Problems(strict=True)
    counts = Counter() if dropped is None else dropped
    return list(read_vist(folder, tier, images=images, problems=problems, dropped=counts))


def read_stress(folder, seed=1, distractors=45, images=None):
    options = {"images": images, "problems": Problems(strict=True), "dropped": Counter()}
    return list(read_dii_stress(folder, seed=seed, distractors=distractors, **options))


def test_dii_documents_are_the_captions_of_a_fixed_set(tmp_path):
    documents = read(dii_folder(tmp_path / "dii"), DII)
    found = corpus_statistics(documents)
    assert found.documents == {"train": 120, "val": 18, "test": 18}
    assert found.unique_images == 52 * 5
    assert (found.sentences.median, found.images.median, found.density) == (5, 5, 0.2)
    assert len({document.id for document in documents}) == found.total
    for document in documents:
        run = int(document.id.rpartition("-")[2])
        assert document.images == tuple(f"{document.extra['album_id']}{n}" for n in range(5))
        assert document.sentences == tuple(f"Caption {run} of photo {i}." for i in document.images)
        assert document.links == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_dii_does_not_depend_on_the_order_of_places_in_the_file(tmp_path_factory, rng):
    """Whether a file lists captions run by run or photo by photo, the documents are the same."""
    annotations = [a for album in ("1", "2", "3") for a in dii_album(album)]
    expected = {d.id: d for d in _dii(tmp_path_factory, annotations)}
    # Shuffled, but so that the captions of one photo keep their order.
    queues = defaultdict(list)
    for annotation in annotations:
        queues[annotation[0]["photo_flickr_id"]].append(annotation)
    photos = [annotation[0]["photo_flickr_id"] for annotation in annotations]
    rng.shuffle(photos)
    mixed = [queues[photo].pop(0) for photo in photos]
    assert {d.id: d for d in _dii(tmp_path_factory, mixed)} == expected
    assert len(expected) == 9


def _dii(tmp_path_factory, annotations):
    folder = tmp_path_factory.mktemp("dii")
    write(folder, DII, "train", annotations)
    return read(folder, DII)


def test_dii_drops_what_is_not_captioned_to_the_end(tmp_path):
    annotations = [*dii_album("1"), *dii_album("2")[:-1]]
    annotations[3][0]["original_text"] = " "
    write(tmp_path, DII, "test", annotations)
    dropped = Counter()
    documents = read(tmp_path, DII, dropped=dropped)
    assert [document.id for document in documents] == ["1-1", "1-2", "2-0", "2-1"]
    assert dropped == {
        "stories of fewer than five photos": 1,
        "stories with a sentence without tokens": 1,
    }


def sis_story(story, album="44277", photos=None):
    photos = photos or [f"{story}{order}" for order in range(5)]
    return [
        sis_annotation(album, story, photo, order, f"Sentence {order} of {story}.")
        for order, photo in enumerate(photos)
    ]


def test_sis_documents_follow_the_story(tmp_path):
    rng = random.Random(0)
    for number, split in enumerate(SPLITS):
        annotations = [a for s in range(6) for a in sis_story(f"{number}{s}0", album=f"a{s // 3}")]
        rng.shuffle(annotations)
        write(tmp_path / "sis", SIS, split, annotations)
    documents = read(tmp_path, SIS)  # the folder above, as VIST's archive unpacks
    found = corpus_statistics(documents)
    assert found.documents == {"train": 6, "val": 6, "test": 6}
    assert (found.sentences.median, found.images.median, found.density) == (5, 5, 0.2)
    for document in documents:
        assert document.images == tuple(f"{document.id}{order}" for order in range(5))
        assert document.sentences == tuple(f"Sentence {n} of {document.id}." for n in range(5))
        assert document.links == tuple((n, n) for n in range(5))
        assert document.extra["album_id"].startswith("a")


def test_genuine_annotation_of_sis(tmp_path, shared_data):
    """The genuine record stands among others of its story; every field it has is understood."""
    (genuine,) = orjson.loads((shared_data / "formats" / "vist_sis_one_record.json").read_bytes())[
        "annotations"
    ]
    assert set(genuine[0]) == set(sis_story("1")[0][0])
    rest = sis_story("45530")[1:]
    write(tmp_path, SIS, "train", [genuine, *rest])
    (document,) = read(tmp_path, SIS)
    assert document.id == "45530"
    assert document.images[0] == "1741642"
    assert document.sentences[0] == "The local parish holds a craft show each year."


def jpeg(path, colour=(200, 30, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), colour).save(path)


def test_stories_with_a_missing_or_invalid_image_are_dropped(tmp_path):
    annotations = [a for story in ("1", "2", "3") for a in sis_story(story)]
    write(tmp_path / "sis", SIS, "train", annotations)
    for story, suffix in (("1", "jpg"), ("2", "png"), ("3", "jpg")):
        for order in range(5):
            jpeg(tmp_path / "images" / "train" / f"{story}{order}.{suffix}")
    (tmp_path / "images" / "train" / "14.jpg").unlink()
    (tmp_path / "images" / "train" / "33.jpg").write_bytes(b"this photo is no longer available")
    images = ImageFolder.open(tmp_path / "images", tmp_path / "corpus")
    dropped = Counter()
    (document,) = read(tmp_path / "sis", SIS, images=images, dropped=dropped)
    assert document.id == "2"
    assert document.images == tuple(f"../images/train/2{order}.png" for order in range(5))
    assert +dropped == {"stories with a missing image": 1, "stories with an invalid image": 1}


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 100), captions=st.integers(2, 4))
def test_dii_stress_adds_captions_of_other_photos_of_the_split(tmp_path_factory, seed, captions):
    folder = dii_folder(tmp_path_factory.mktemp("dii"), (12, 8, 8), captions)
    plain = {document.id: document for document in read(folder, DII)}
    documents = read_stress(folder, seed)
    assert [document.id for document in documents] == list(plain)
    photos = defaultdict(set)
    for document in documents:
        photos[document.split].update(document.images)
    assert sum(map(len, photos.values())) == len(set().union(*photos.values()))
    assert corpus_statistics(documents).density == 0.02
    for document in documents:
        assert len(document.sentences) == 50 and len(document.links) == 5
        assert document.images == plain[document.id].images
        true = {image: document.sentences[sentence] for sentence, image in document.links}
        assert tuple(true[n] for n in range(5)) == plain[document.id].sentences
        linked = {sentence for sentence, _ in document.links}
        added = [text for n, text in enumerate(document.sentences) if n not in linked]
        assert len(set(added)) == 45
        for text in added:
            photo = text.rstrip(".").rpartition(" ")[2]
            assert photo in photos[document.split] and photo not in document.images


def test_dii_stress_is_the_same_for_the_same_seed_only(tmp_path):
    folder = dii_folder(tmp_path / "dii")
    assert read_stress(folder) == read_stress(folder)
    assert read_stress(folder) != read_stress(folder, seed=2)


def test_dii_stress_needs_enough_captions_in_the_split(tmp_path):
    with pytest.raises(SightlineError, match="only 15 captions"):
        read_stress(dii_folder(tmp_path / "dii", (2, 0, 0)))


BAD = [
    (["not", "one"], None, "list of 2"),
    ({}, None, "an object"),
    ([7], None, "a whole number"),
    ([{"album_id": "1"}], "story_id", "no such key"),
    (sis_annotation("1", "1", None, 0, "A."), "photo_flickr_id", "found null"),
    (sis_annotation("1", "1", "9", "0", "A."), "worker_arranged_photo_order", "found a string"),
    (sis_annotation("1", "1", "9", 5, "A."), "worker_arranged_photo_order", "found 5"),
    (sis_annotation("1", "1", "9", 0, "A."), "worker_arranged_photo_order", "another photo"),
    (sis_annotation("1", "1", "9", 0, None), "original_text", "found null"),
]


@pytest.mark.parametrize(("record", "field", "reason"), BAD)
def test_bad_annotations_are_counted_and_skipped(tmp_path, record, field, reason):
    write(tmp_path, SIS, "train", [*sis_story("1"), record, *sis_story("2")])
    problems = Problems()
    documents = read(tmp_path, SIS, problems=problems)
    assert [document.id for document in documents] == ["1", "2"]
    (problem,) = problems.first
    assert (problem.line, problem.field) == ("annotations[5]", field)
    assert reason in problem.reason
    with pytest.raises(ProblemError):
        read(tmp_path, SIS)


def test_files_are_found_by_their_names(tmp_path):
    names = ["train", "validation", "test"]
    for name in names:
        (tmp_path / f"{name}.{DII}.json").touch()
    (tmp_path / f"notes-{DII}.json").touch()
    assert [file.name.partition(".")[0] for file in vist_files(tmp_path, DII)] == names
    (tmp_path / f"val.{DII}.json").touch()
    with pytest.raises(SightlineError, match="two files of val"):
        vist_files(tmp_path, DII)
    with pytest.raises(SightlineError, match=r"no file train\.story-in-sequence\.json"):
        vist_files(tmp_path, SIS)
