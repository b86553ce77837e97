"""DIY documents, by the recipe of the paper's supplement: Reddit posts that are imgur albums.

The submissions come from dumps, the albums from saved pages and the images from a folder. A caption
is a sentence, linked to the image it was written under. Gifs and images that cannot be decoded are
left out, their captions stay: "its possible for there to be more captions than images in a
document, e.g., because we discard animated gifs".

The paper searched all images together for duplicates and discarded "any documents with any
duplicate images". So does this: two albums that share an image, or nearly, are both left out. (The
paper's 8.8K documents of 17.4 images on average have 154K images, all of them different.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.decode_pool import DecodePool
from sightline.documents import Document
from sightline.image_folders import ImageFolder
from sightline.image_headers import recognise
from sightline.near_duplicates import THRESHOLD, near_duplicates, perceptual_hash
from sightline.problems import Problems, SightlineError
from sightline.progress import Progress
from sightline.readers.imgur_albums import AlbumImage, read_album
from sightline.readers.reddit_dumps import Post, read_posts
from sightline.sentences import tokenize
from sightline.splits import random_splits

_SUBREDDIT = "DIY"
_MINIMUM_SCORE = 25
#: A document has so many captions of so many tokens at least, and so many images.
_MINIMUM_CAPTIONS, _MINIMUM_TOKENS = 2, 5
MINIMUM_IMAGES = 2
#: And so many captions, and images, at most.
_MAXIMUM = 40

# Pixels of the shorter side at which images are hashed; the hash looks at 32 x 32 means anyway.
_SHORTER_SIDE = 128


@dataclass(slots=True)
class _Draft:
    """An album on its way to a document: captions, and for each image its file and caption."""

    post: Post
    captions: list[str]
    # The file of an image, and which caption was written under it.
    images: list[tuple[Path, int | None]]


def read_diy(
    dumps: Sequence[Path],
    pages: Path,
    *,
    seed: int,
    validation: float,
    test: float,
    images: ImageFolder,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield the documents of Reddit dumps, of which the album pages and images were saved.

    `pages` has a file `<album id>.html` for each album. `validation` and `test` are shares of the
    documents, or numbers from 1 on. The captions of all albums are held in memory, because only
    all images together show which are duplicates.
    """
    if not pages.is_dir():
        raise SightlineError(f"{pages}: no such folder of album pages.")
    posts = read_posts(
        dumps,
        subreddit=_SUBREDDIT,
        minimum_score=_MINIMUM_SCORE,
        problems=problems,
        dropped=dropped,
    )
    drafts = [
        _draft(post, album, images, dropped) for post, album in _albums(posts, pages, dropped)
    ]
    hashes = _hashes({path for draft in drafts for path, _ in draft.images})
    for draft in drafts:
        valid = [image for image in draft.images if image[0] in hashes]
        dropped["invalid images"] += len(draft.images) - len(valid)
        draft.images = valid
    duplicated = _duplicated(drafts, hashes)
    kept = [draft for draft in drafts if _is_kept(draft, draft.post.id in duplicated, dropped)]
    splits = random_splits((draft.post.id for draft in kept), validation, test, seed)
    for draft in kept:
        yield _document(draft, splits[draft.post.id], images)


def _albums(
    posts: Iterable[Post], pages: Path, dropped: Counter[str]
) -> Iterator[tuple[Post, list[AlbumImage]]]:
    """Find the saved page of each post; of posts of the same album, the first counts."""
    posted: set[str] = set()
    albums: set[str] = set()
    for post in posts:
        if post.id in posted or post.album in albums:
            dropped["submissions of an album that was posted before"] += 1
            continue
        posted.add(post.id)
        albums.add(post.album)
        album = read_album(pages / f"{post.album}.html")
        if album is None:
            dropped["albums without a saved page"] += 1
        elif not album:
            dropped["albums without post-image-container"] += 1
        else:
            yield post, album


def _draft(
    post: Post, album: list[AlbumImage], images: ImageFolder, dropped: Counter[str]
) -> _Draft:
    """Take the captions and those images of an album that are there and do not move."""
    draft = _Draft(post, [], [])
    for image in album:
        caption = None
        if image.caption:
            caption = len(draft.captions)
            draft.captions.append(image.caption)
        path = images.find(image.file_name or image.id) or images.find(image.id)
        if image.moves or (path is not None and _is_gif(path)):
            dropped["gifs"] += 1
        elif path is None:
            dropped["missing images"] += 1
        else:
            draft.images.append((path, caption))
    return draft


def _is_gif(path: Path) -> bool:
    """Look at the content: imgur serves a file under whatever extension it is asked for."""
    try:
        if not path.is_file():  # to open a pipe would wait for someone to write to it
            return False
        with path.open("rb") as file:
            return recognise(file.read(64)) == "GIF"
    except OSError:
        return False


def _hashes(paths: Iterable[Path]) -> dict[Path, int]:
    """Decode all images in isolation; gives the perceptual hash of each that can be."""
    ordered = sorted(paths)
    hashes = {}
    with DecodePool() as pool, Progress("hashing", len(ordered), "images") as progress:
        for path, decoded in zip(ordered, pool.decode_many(ordered, _SHORTER_SIDE), strict=True):
            if decoded.pixels is not None:
                hashes[path] = perceptual_hash(decoded.pixels)
            progress.advance()
    return hashes


def _duplicated(drafts: list[_Draft], hashes: dict[Path, int]) -> set[str]:
    """Give the ids of posts with an image that is nearly the same as another, theirs or not."""
    counts = Counter(hashes[path] for draft in drafts for path, _ in draft.images)
    # Equal hashes are counted, not paired: a notice that an image was removed can be everywhere.
    distinct = sorted(counts)
    same = {value for value, count in counts.items() if count > 1}
    for pair in near_duplicates(distinct, THRESHOLD):
        same.update(distinct[place] for place in pair)
    return {
        draft.post.id for draft in drafts if any(hashes[path] in same for path, _ in draft.images)
    }


def _is_kept(draft: _Draft, has_duplicates: bool, dropped: Counter[str]) -> bool:
    """Apply the paper's conditions in its order; the first that fails is counted."""
    long_captions = sum(len(tokenize(caption)) >= _MINIMUM_TOKENS for caption in draft.captions)
    reasons = {
        "documents with near-duplicate images": has_duplicates,
        f"documents of fewer than {_MINIMUM_CAPTIONS} captions of {_MINIMUM_TOKENS} tokens": (
            long_captions < _MINIMUM_CAPTIONS
        ),
        f"documents of fewer than {MINIMUM_IMAGES} images": len(draft.images) < MINIMUM_IMAGES,
        f"documents of more than {_MAXIMUM} images or captions": (
            max(len(draft.images), len(draft.captions)) > _MAXIMUM
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            dropped[reason] += 1
            return False
    return True


def _document(draft: _Draft, split: str, images: ImageFolder) -> Document:
    links = tuple(
        (caption, place) for place, (_, caption) in enumerate(draft.images) if caption is not None
    )
    post = draft.post
    extra = {"album": post.album, "score": post.score}
    return Document(
        post.id,
        tuple(draft.captions),
        tuple(images.name(path) for path, _ in draft.images),
        links,
        split,
        extra=extra if post.title is None else {"title": post.title, **extra},
    )
