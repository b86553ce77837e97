"""From one format of a corpus to another, and what the other one has no room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sightline.choices import CorpusFormat
from sightline.corpus import Corpus
from sightline.documents import Document, split_name
from sightline.problems import SightlineError, UsageError
from sightline.progress import Progress
from sightline.readers.hessel2019 import write_hessel2019
from sightline.readers.kept_fields import Leftovers
from sightline.readers.mmc4 import mmc4_record, with_matched_links
from sightline.readers.native import write_jsonl
from sightline.readers.obelics import obelics_record, with_layout_links, write_obelics_parquet
from sightline.readers.parquet import write_parquet
from sightline.readers.tar_shards import SHARD_BYTES, write_shard, write_shards
from sightline.readers.webdataset import MAX_IMAGE, is_webdataset, read_samples, sample_files
from sightline.unpacking import image_extension, unpack_image

#: What a file of each format is called; the paper's release is always a folder.
_JSONL = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_SUFFIXES: dict[str, tuple[str, ...]] = {
    "native": (*_JSONL, ".parquet"),
    "mmc4": _JSONL,
    "obelics": (*_JSONL, ".parquet"),
    "webdataset": (".tar",),
    "hessel2019": (),
}
_NAME_IN_FOLDER = "documents.jsonl"

#: Gives the bytes of an image of a document, by its index.
_Images = Callable[[int], bytes | None]


@dataclass
class Conversion:
    """What became of a corpus: how much was written, and what found no room."""

    output: Path
    documents: int = 0
    leftovers: Leftovers = field(default_factory=Leftovers)
    unpacked: int = 0  # image files written beside the documents
    # Where the images are, if their paths do not lead there any more.
    images_at: Path | None = None


def convert(
    corpus: Corpus,
    output: Path,
    to: CorpusFormat,
    *,
    links_from_matches: bool = False,
    links_from_layout: bool = False,
    shard_bytes: int | None = None,
) -> Conversion:
    """Write the documents of a corpus in another format, one after the other.

    The corpus should have been opened with `allow_empty`, or documents without sentences or
    images are left out. MMC4's matches and the places of images are taken for true links only if
    asked for. Shards are written to a folder, unless `output` is a `.tar` file.
    """
    conversion = Conversion(output_path(output, to))
    samples = _samples(corpus, conversion)
    if links_from_matches:
        samples = ((with_matched_links(document), images) for document, images in samples)
    if links_from_layout:
        samples = ((with_layout_links(document), images) for document, images in samples)
    samples = _counted(samples, corpus, conversion)
    if to == "webdataset":
        _write_webdataset(samples, conversion, shard_bytes)
    else:
        folder = conversion.output if to == "hessel2019" else conversion.output.parent
        _write_documents(_beside(samples, corpus, folder, conversion), to, conversion)
    return conversion


def output_path(output: Path, to: CorpusFormat) -> Path:
    """The file or folder that is written: in a folder, some formats have a file."""
    if output.name.endswith(_SUFFIXES[to]):
        return output
    if not output.suffix or output.is_dir():
        return output / _NAME_IN_FOLDER if to in ("native", "mmc4", "obelics") else output
    endings = " or ".join([", ".join(_SUFFIXES[to][:-1]), *_SUFFIXES[to][-1:]]).removeprefix(" or ")
    what = f"a name that ends in {endings}, or a folder" if endings else "a folder"
    raise UsageError(f"{output} cannot be written as {to}; expected {what}.")


def _samples(corpus: Corpus, conversion: Conversion) -> Iterator[tuple[Document, _Images]]:
    if not is_webdataset(corpus.file):
        for document in corpus:
            yield document, partial(_image_file, document)
        return
    wanted = split_name(corpus.split)
    for sample in read_samples(corpus.file, corpus.problems, allow_empty=True):
        corpus.splits.setdefault(sample.document.split)
        if wanted is None or split_name(sample.document.split) == wanted:
            conversion.leftovers.dropped["other files"] += sample.others
            yield sample.document, sample.image


def _image_file(document: Document, index: int) -> bytes | None:
    path = (document.folder or Path()) / document.images[index]
    try:
        # No pipe or device: they could block, or never end.
        return path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_IMAGE else None
    except (OSError, ValueError):  # or a name that no file can have
        return None


def _counted(
    samples: Iterator[tuple[Document, _Images]], corpus: Corpus, conversion: Conversion
) -> Iterator[tuple[Document, _Images]]:
    with Progress("converting", None, "documents") as progress:
        for sample in samples:
            conversion.documents += 1
            progress.advance()
            yield sample
    # Before the writer puts its file in place: no document, no file.
    if not conversion.documents:
        if corpus.split is not None and corpus.splits:
            raise corpus.split_not_found(corpus.split)
        raise SightlineError(f"{corpus.path}: no document could be converted.")


def _beside(
    samples: Iterator[tuple[Document, _Images]],
    corpus: Corpus,
    folder: Path,
    conversion: Conversion,
) -> Iterator[Document]:
    """Give the documents, with the images of shards as files beside what is written."""
    for number, (document, images) in enumerate(samples):
        if is_webdataset(corpus.file):
            yield _unpacked(document, images, folder, conversion)
            continue
        if number == 0 and document.images and images(0) is not None:
            found = (folder / document.images[0]).is_file()
            conversion.images_at = None if found else corpus.root
        yield document


def _unpacked(
    document: Document, images: _Images, folder: Path, conversion: Conversion
) -> Document:
    names = list(document.images)
    for index, image in enumerate(names):
        data = images(index)
        name = None if data is None else unpack_image(data, image, folder)
        if name is None:
            conversion.leftovers.dropped["images without file"] += 1
        else:
            names[index] = name
            conversion.unpacked += 1
    return document if tuple(names) == document.images else replace(document, images=tuple(names))


def _write_documents(
    documents: Iterator[Document], to: CorpusFormat, conversion: Conversion
) -> None:
    path, leftovers = conversion.output, conversion.leftovers
    if to == "hessel2019":
        _write_release(documents, conversion)
        return
    if path.name == _NAME_IN_FOLDER:
        path.parent.mkdir(parents=True, exist_ok=True)
    if to == "mmc4":
        write_jsonl(documents, path, lambda document: mmc4_record(document, leftovers))
    elif to == "obelics" and path.suffix == ".parquet":
        write_obelics_parquet(documents, path, leftovers)
    elif to == "obelics":
        write_jsonl(documents, path, lambda document: obelics_record(document, leftovers))
    elif path.suffix == ".parquet":
        write_parquet(documents, path)
    else:
        write_jsonl(documents, path)


def _write_release(documents: Iterator[Document], conversion: Conversion) -> None:
    dropped = conversion.leftovers.dropped

    def watched() -> Iterator[Document]:
        for document in documents:
            mmc4 = document.extra.get("mmc4")
            dropped["matrices"] += isinstance(mmc4, dict) and bool(mmc4.get("similarity_matrix"))
            dropped["positions"] += "obelics" in document.extra
            yield document

    stored = write_hessel2019(watched(), conversion.output)
    dropped.update(links=stored.links_lost, keys=stored.keys_lost, splits=stored.splits_lost)


def _write_webdataset(
    samples: Iterator[tuple[Document, _Images]], conversion: Conversion, shard_bytes: int | None
) -> None:
    dropped = conversion.leftovers.dropped

    def files(document: Document, images: _Images) -> Iterator[tuple[int, str, bytes]]:
        for index in range(len(document.images)):
            data = images(index)
            extension = None if data is None else image_extension(data)
            if data is None or extension is None:
                dropped["images without file"] += 1
            else:
                yield index, extension, data

    new = (sample_files(document, files(document, images)) for document, images in samples)
    if conversion.output.suffix == ".tar":
        write_shard(new, conversion.output)
    else:
        write_shards(new, conversion.output, shard_bytes or SHARD_BYTES)
