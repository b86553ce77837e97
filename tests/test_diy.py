"""The DIY builder: dumps, album pages and images as small as they can be, sound and broken."""

import bz2
import gzip
import lzma
import re
import shlex
import time
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest
import zstandard
from command_server import sightline
from PIL import Image

from sightline.image_folders import ImageFolder
from sightline.near_duplicates import THRESHOLD, hash_distance, perceptual_hash
from sightline.problems import Problems, SightlineError
from sightline.readers.diy import read_diy
from sightline.readers.imgur_albums import AlbumImage, parse_album
from sightline.readers.reddit_dumps import Post, album_id, read_posts

CAPTIONS = ["First I cut the old wood.", "Then it was glued and clamped."]


def submission(number, **changes):
    return {
        "id": f"p{number}",
        "subreddit": "DIY",
        "score": 100,
        "url": f"http://imgur.com/a/al{number}",
        "is_self": False,
        "domain": "imgur.com",
        "title": f"I made {number}",
        "created_utc": "1356998400",
        **changes,
    }


def dump(path, *records):
    lines = [line if isinstance(line, bytes) else orjson.dumps(line) for line in records]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def posts(*files, problems=None):
    dropped = Counter()
    found = read_posts(
        files,
        subreddit="DIY",
        minimum_score=25,
        problems=problems or Problems(strict=True),
        dropped=dropped,
    )
    return list(found), dropped


# ---- submissions


def test_only_good_albums_posted_to_the_subreddit(tmp_path):
    path = dump(
        tmp_path / "RS_2013-01",
        submission(1),
        submission(2, subreddit="diy", score=25),
        submission(3, score=24),
        submission(4, subreddit="DIYUK"),
        submission(5, subreddit="pics"),
        submission(6, url="http://imgur.com/abcde"),
        submission(7, url="http://example.org/a/abcde"),
        submission(8, is_self=True, url="https://www.reddit.com/r/DIY/comments/a/imgur.com/a/b"),
        submission(9, subreddit="pics", title="for a DIY table"),
    )
    found, dropped = posts(path)
    assert found == [Post("p1", "al1", 100, "I made 1"), Post("p2", "al2", 25, "I made 2")]
    assert dropped == {
        "submissions not to DIY": 3,
        "submissions with a score below 25": 1,
        "submissions that link to no imgur album": 3,
    }


@pytest.mark.parametrize(
    ("url", "album"),
    [
        ("http://imgur.com/a/4ov7Z", "4ov7Z"),
        ("https://m.imgur.com/a/4ov7Z#0", "4ov7Z"),
        ("http://www.imgur.com/a/4ov7Z/layout/blog?x=/a/b", "4ov7Z"),
        ("HTTPS://IMGUR.COM/a/4ov7Z", "4ov7Z"),
        ("https://imgur.com/a/a-table-of-oak-4ov7Z", "4ov7Z"),
        ("http://imgur.com/gallery/4ov7Z", None),
        ("http://i.imgur.com/4ov7Z.jpg", None),
        ("http://notimgur.com/a/4ov7Z", None),
        ("http://imgur.com.example.org/a/4ov7Z", None),
        ("http://imgur.com/a/../../secret", None),
        ("", None),
    ],
)
def test_album_of_a_url(url, album):
    assert album_id(url) == album


def raw_zstandard(data, window_log):
    """A frame of one raw block that asks for a window of this size (RFC 8878, section 3.1.1)."""
    window = bytes([(window_log - 10) << 3])
    return b"\x28\xb5\x2f\xfd\0" + window + (len(data) << 3 | 1).to_bytes(3, "little") + data


PACKED = {
    "plain": bytes,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "gz": gzip.compress,
    "zst": zstandard.compress,
    "zst, window of 2 GiB": lambda data: raw_zstandard(data, 31),
    "two bz2 joined": lambda data: bz2.compress(data[:100]) + bz2.compress(data[100:]),
    "two zst joined": lambda data: zstandard.compress(data[:50]) + zstandard.compress(data[50:]),
}


@pytest.mark.parametrize("kind", PACKED)
def test_dumps_in_all_their_forms(tmp_path, kind):
    path = dump(tmp_path / "dump", *map(submission, range(40)))
    path.write_bytes(PACKED[kind](path.read_bytes().removesuffix(b"\n")))
    assert [post.id for post in posts(path)[0]] == [f"p{number}" for number in range(40)]


@pytest.mark.parametrize("kind", ["bz2", "xz", "gz", "zst"])
def test_a_dump_that_ends_early_gives_what_came_before(tmp_path, kind):
    path = dump(tmp_path / "dump", *map(submission, range(8_000)))
    whole = PACKED[kind](path.read_bytes())
    path.write_bytes(whole[: len(whole) * 3 // 4])
    problems = Problems()
    found, _ = posts(path, problems=problems)
    assert 0 < len(found) < 8_000
    (problem,) = problems.first
    assert "damaged or cut off" in problem.reason
    assert problem.line == len(found) + 1


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b'{"subreddit": "DIY"', None),
        (b'["DIY"]', None),
        (b'"DIY \xff"', None),
        (submission(1, score=None), "score"),
        (submission(1, score="30"), "score"),
        (submission(1, id=None), "id"),
        (submission(1, url=7), "url"),
        ({"id": "DIY", "score": 30, "url": ""}, "subreddit"),
    ],
)
def test_bad_lines_are_problems(tmp_path, line, field):
    path = dump(tmp_path / "dump", submission(2), line, submission(3))
    problems = Problems()
    assert [post.id for post in posts(path, problems=problems)[0]] == ["p2", "p3"]
    assert [(problem.line, problem.field) for problem in problems.first] == [(2, field)]


def test_a_line_without_end_is_thrown_away(tmp_path, monkeypatch):
    monkeypatch.setattr("sightline.readers.reddit_dumps.MAX_LINE", 2**16)
    path = tmp_path / "dump"
    good = [orjson.dumps(submission(number)) for number in (1, 2)]
    path.write_bytes(good[0] + b"\n" + b"DIY" * 2**20 + b"\nDIY\n\n" + good[1])
    problems = Problems()
    assert [post.id for post in posts(path, problems=problems)[0]] == ["p1", "p2"]
    assert [problem.line for problem in problems.first] == [2, 3]


# ---- album pages

PAGE = """<!DOCTYPE html><html><head><title>I made it - Album on Imgur</title></head><body>
<h1 class="post-title">I made it</h1><div class="post-images">{containers}</div>
<div id="recommendations"><div class="post-image">x</div></div></body></html>"""
STILL = """<div id="{id}" class="post-image-container" itemscope itemtype="http://schema.org/ImageObject">
  <div style="min-height: 250px" class="post-image">
    <a href="//i.imgur.com/{id}{ext}" class="zoom"><img src="//i.imgur.com/{id}h.jpg" alt=""/></a>
  </div>
  <div class="post-image-meta">{caption}</div>
  <meta itemprop="datePublished" content="2017-02-11"></div>"""
MOVING = """<div id="{id}" class="post-image-container" itemscope itemtype="http://schema.org/VideoObject">
  <div style="min-height: 250px" class="post-image">
    <meta itemprop="contentURL" content="//i.imgur.com/{id}{ext}" alt="" /></div>
  <div>{caption}</div></div>"""


def container(image_id, caption="", ext=".jpg", form=STILL):
    written = f'<p class="post-image-description" itemprop="description">{caption}</p>'
    return form.format(id=image_id, ext=ext, caption=written if caption else "")


def page(*containers):
    return PAGE.format(containers="\n".join(containers))


def test_images_and_captions_of_a_page():
    text = page(
        container("aaa", "The legs<br/>are cut &amp; <a href='x'>sand<b>ed</b></a>."),
        container("bbb", ext=".png?1"),
        container("ccc", "It turns.", ".gif", MOVING),
        container("ddd", " \n ", ".JPG"),
    )
    assert parse_album(text) == [
        AlbumImage("aaa", "aaa.jpg", "The legs are cut & sanded.", False),
        AlbumImage("bbb", "bbb.png", "", False),
        AlbumImage("ccc", "ccc.gif", "It turns.", True),
        AlbumImage("ddd", "ddd.jpg", "", False),
    ]


def test_containers_that_say_less():
    text = page(
        '<div class="other post-image-container"><img src="//i.imgur.com/eee.jpeg"></div>',
        '<div id="fff" class="post-image-container"></div>',
        '<div id="../x" class="post-image-container"><p>nothing</p></div>',
        '<span id="ggg" class="post-image-container"></span>',
    )
    assert parse_album(text) == [
        AlbumImage("eee", "eee.jpeg", "", False),
        AlbumImage("fff", None, "", False),
    ]


@pytest.mark.parametrize(
    "text", ["", "no page", "<html><body><div class='post-image'></div>", "\0"]
)
def test_pages_without_containers(text):
    assert parse_album(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "<div>" * 100_000,
        "<b>" * 50_000 + "<div>" * 1_000,
        "<div class='post-image-container'>" * 20_000,
    ],
    ids=["divs", "formatting", "containers"],
)
def test_hostile_pages_take_seconds_at_most(text):
    started = time.process_time()
    parse_album(text + container("aaa", "A caption."))
    assert time.process_time() - started < 8


# ---- the recipe


def photo(seed):
    """A picture unlike the others: smooth noise."""
    noise = np.random.default_rng(seed).integers(0, 255, (12, 16, 3), np.uint8)
    return Image.fromarray(noise).resize((160, 120), Image.Resampling.BICUBIC)


class Albums:
    """Submissions, saved pages and image files, to put albums in."""

    def __init__(self, folder):
        self.folder = folder
        self.records = []
        self.photos = 0
        for name in ("pages", "images"):
            (folder / name).mkdir()

    def image(self, name=None, content=None):
        """Save a new photo, or some bytes; gives the id."""
        self.photos += 1
        name = name or f"i{self.photos}.jpg"
        path = self.folder / "images" / name
        if content is None:
            photo(self.photos).save(path, quality=90)
        else:
            path.write_bytes(content)
        return path.stem

    def album(self, *containers, **changes):
        """Post an album of these containers; gives the id of the post."""
        number = len(self.records)
        self.records.append(submission(number, **changes))
        (self.folder / "pages" / f"al{number}.html").write_text(page(*containers))
        return f"p{number}"

    def good_album(self, captions=CAPTIONS, images=None):
        names = images or [self.image() for _ in captions]
        return self.album(*map(container, names, captions))

    def build(self, seed=1, share=0.0, records=None):
        dropped = Counter()
        documents = read_diy(
            [dump(self.folder / "dump.jsonl", *(records or self.records))],
            self.folder / "pages",
            seed=seed,
            validation=share,
            test=share,
            images=ImageFolder.open(self.folder / "images", self.folder / "corpus"),
            problems=Problems(strict=True),
            dropped=dropped,
        )
        return list(documents), +dropped


@pytest.fixture
def albums(tmp_path):
    return Albums(tmp_path)


def test_a_caption_is_linked_to_its_image(albums):
    ids = [albums.image() for _ in range(3)]
    albums.album(container(ids[0]), container(ids[1], CAPTIONS[0]), container(ids[2], CAPTIONS[1]))
    (document,), dropped = albums.build()
    assert document.id == "p0"
    assert document.sentences == tuple(CAPTIONS)
    assert document.images == tuple(f"../images/{name}.jpg" for name in ids)
    assert document.links == ((0, 1), (1, 2))
    assert document.extra == {"title": "I made 0", "album": "al0", "score": 100}
    assert not dropped


def test_gifs_and_invalid_images_go_and_their_captions_stay(albums):
    ids = [albums.image() for _ in range(2)]
    gif = albums.image("moving.gif", b"GIF89a")
    hidden = albums.image("hidden.jpg")
    photo(99).save(albums.folder / "images" / "hidden.jpg", format="GIF")
    broken = albums.image("broken.jpg", b"\xff\xd8\xff\xe0 no more")
    albums.album(
        container(ids[0], CAPTIONS[0]),
        container(gif, "It turns.", ".gif", MOVING),
        container(hidden, "A gif by content."),
        container(broken, "Half an image."),
        container("nowhere", "Never saved."),
        container(ids[1], CAPTIONS[1]),
    )
    (document,), dropped = albums.build()
    assert document.sentences == (
        CAPTIONS[0],
        "It turns.",
        "A gif by content.",
        "Half an image.",
        "Never saved.",
        CAPTIONS[1],
    )
    assert document.images == tuple(f"../images/{name}.jpg" for name in ids)
    assert document.links == ((0, 0), (5, 1))
    assert dropped == {"gifs": 2, "invalid images": 1, "missing images": 1}


def near(albums, image_id, name):
    """Save a copy that is smaller and recompressed, and looks the same."""
    original = Image.open(albums.folder / "images" / f"{image_id}.jpg")
    copy = original.resize((100, 75))
    path = albums.folder / "images" / f"{name}.jpg"
    copy.save(path, quality=40)
    distance = hash_distance(
        perceptual_hash(np.asarray(original)), perceptual_hash(np.asarray(Image.open(path)))
    )
    assert distance <= THRESHOLD
    assert path.read_bytes() != (albums.folder / "images" / f"{image_id}.jpg").read_bytes()
    return name


def test_a_document_with_near_duplicates_in_it_is_dropped(albums):
    first = albums.image()
    albums.good_album(images=[first, near(albums, first, "copy")])
    kept = albums.good_album()
    documents, dropped = albums.build()
    assert [document.id for document in documents] == [kept]
    assert dropped == {"documents with near-duplicate images": 1}


def test_documents_that_share_an_image_are_both_dropped(albums):
    first, second = albums.image(), albums.image()
    albums.good_album(images=[first, albums.image()])
    albums.good_album(images=[near(albums, first, "copy"), albums.image()])
    kept = albums.good_album()
    albums.good_album(images=[second, albums.image()])
    albums.good_album(images=[second, albums.image()])
    documents, dropped = albums.build()
    assert [document.id for document in documents] == [kept]
    assert dropped == {"documents with near-duplicate images": 4}


def test_an_album_that_will_be_dropped_counts_in_the_search_for_duplicates(albums):
    """The paper searches first and looks at captions after."""
    first = albums.image()
    albums.good_album(images=[first, albums.image()])
    albums.album(container(near(albums, first, "copy")))
    albums.good_album()
    assert albums.build()[1] == {"documents with near-duplicate images": 2}


def test_a_turned_copy_is_another_image(albums):
    first = albums.image()
    path = albums.folder / "images" / "turned.jpg"
    Image.open(albums.folder / "images" / f"{first}.jpg").rotate(90, expand=True).save(path)
    albums.good_album(images=[first, "turned"])
    assert len(albums.build()[0]) == 1


def test_a_notice_in_the_place_of_many_images_is_no_trouble(albums):
    notice = photo(1234)
    names = []
    for place in range(60):
        notice.save(albums.folder / "images" / f"removed{place}.jpg")
        names.append(f"removed{place}")
    for start in range(0, 60, 2):
        albums.good_album(images=names[start : start + 2])
    albums.good_album()
    documents, dropped = albums.build()
    assert len(documents) == 1
    assert dropped == {"documents with near-duplicate images": 30}


def test_captions_images_and_sizes_that_are_not_enough_or_too_much(albums):
    albums.good_album(captions=["One two three four five", "One two three four", "Six"])
    albums.good_album(captions=["One two three four five", "Six seven eight nine ten"])
    albums.album(container(albums.image(), CAPTIONS[0]), container("nowhere", CAPTIONS[1]))
    albums.good_album(captions=CAPTIONS * 20)
    long = [container(albums.image()) for _ in range(40)]
    albums.album(*long, *(container(albums.image(), caption) for caption in CAPTIONS))
    moving = [container(f"m{place}", "It turns.", ".gif", MOVING) for place in range(39)]
    albums.album(*moving, *(container(albums.image(), caption) for caption in CAPTIONS))
    documents, dropped = albums.build()
    assert [document.id for document in documents] == ["p1", "p3"]
    assert dropped == {
        "documents of fewer than 2 captions of 5 tokens": 1,
        "documents of fewer than 2 images": 1,
        "documents of more than 40 images or captions": 2,
        "missing images": 1,
        "gifs": 39,
    }


def test_albums_posted_twice_missing_and_without_containers(albums):
    first = albums.good_album()
    albums.records.append(submission(77, url="https://imgur.com/a/al0?x"))
    albums.records.append(submission(78))
    albums.album()
    documents, dropped = albums.build()
    assert [document.id for document in documents] == [first]
    assert dropped == {
        "submissions of an album that was posted before": 1,
        "albums without a saved page": 1,
        "albums without post-image-container": 1,
    }


def test_splits_do_not_depend_on_the_order_of_the_dumps(albums):
    for _ in range(9):
        albums.good_album()
    documents, _ = albums.build(share=1 / 8.8)
    assert Counter(document.split for document in documents) == {"train": 7, "val": 1, "test": 1}
    turned, _ = albums.build(share=1 / 8.8, records=albums.records[::-1])
    by_id = {document.id: document for document in documents}
    assert by_id == {document.id: document for document in turned}
    assert albums.build(share=1 / 8.8, seed=2)[0] != documents
    used = [image for document in documents for image in document.images]
    assert len(used) == len(set(used)) == 18


def test_a_folder_of_pages_that_is_not_there(albums):
    albums.image()
    (albums.folder / "pages").rmdir()
    with pytest.raises(SightlineError, match="no such folder of album pages"):
        albums.build()


def test_the_command_writes_a_corpus_and_says_what_was_dropped(albums):
    for _ in range(9):
        albums.good_album()
    albums.album()
    output = albums.folder / "corpus"
    names = {"PAGES": albums.folder / "pages", "IMAGES": albums.folder / "images", "CORPUS": output}
    for month, records in (("01", albums.records[:3]), ("02", albums.records[3:])):
        path = dump(albums.folder / "plain", submission(99, score=3), *records)
        names[f"RS_2013-{month}.bz2"] = albums.folder / f"{month}.bz2"
        names[f"RS_2013-{month}.bz2"].write_bytes(bz2.compress(path.read_bytes()))
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    (command,) = re.findall(r"^sightline (build diy .*)", page, re.MULTILINE)
    out, words = sightline(*(names.get(word, word) for word in shlex.split(command)))
    assert "dropped 2 submissions with a score below 25" in words
    assert "dropped 1 albums without post-image-container" in words
    assert "7/1/1" in out and "7K/1K/1K" in out and "50.0%" in out
    documents = [orjson.loads(line) for line in (output / "documents.jsonl").open("rb")]
    assert len(documents) == 9
    for document in documents:
        assert all((output / image).is_file() for image in document["images"])
        assert document["links"] == [[0, 0], [1, 1]]
