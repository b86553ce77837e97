"""Opens what several commands work with, and tells with `--verbose` what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.console import detail, say, say_left_out, timed
from sightline.problems import Problems, SightlineError
from sightline.progress import counted

if TYPE_CHECKING:
    from sightline.clip_model import Model
    from sightline.decode_pool import DecodePool


#: The end of a sentence about images without a text.
#: Of office programs, which can write DOCX and PDF too.
_TO_BE_SAVED_AGAIN = (".doc", ".odt", ".rtf", ".pages", ".wps", ".pptx", ".ppt", ".odp")
_TEXT_NEEDED = (
    "images are linked to the sentences of a text: name the article that shows them (HTML, "
    "Markdown, PDF, DOCX, EPUB), or a folder with the images and their text as .txt or .md."
)


def folders_of(inputs: Iterable[Path]) -> list[Path]:
    """The folders among the inputs: an article in one may show images from all of it."""
    return [path for path in inputs if path.is_dir()]


def files_of_shards(inputs: Iterable[Path]) -> list[Path]:
    """The inputs, with the files of folders of shards or of link records in place of these."""
    from sightline.article_folders import without_folders
    from sightline.corpus import SUFFIXES
    from sightline.readers.recognition import are_link_records, are_results
    from sightline.shards import is_shard_folder
    from sightline.storage import files_in

    found: list[Path] = []
    for path in inputs:
        names = files_in(str(path)) if path.is_dir() else ()
        files = [path / name for name in names if name.endswith(SUFFIXES)]
        if files and not is_shard_folder(str(path)):
            # Beside documents or articles they are what was found in these before.
            alone = all(map(are_results, files)) and without_folders([path]) == [path]
            files = [file for file in files if alone and are_link_records(file)]
        found += files or [path]
    return list(dict.fromkeys(found))


def articles_and_corpora(inputs: Iterable[Path]) -> list[Path]:
    """The inputs, with the articles in and below plain folders in place of these."""
    from sightline.article_folders import without_folders
    from sightline.articles import is_article
    from sightline.corpus import read

    dropped: Counter[str] = Counter()
    found = without_folders(inputs, dropped)
    say_left_out(dropped)
    for path in found:
        if not is_article(path):
            try:
                read(path)
            except SightlineError as error:
                if images := _images_of(path):
                    raise SightlineError(f"{path} {images}; {_TEXT_NEEDED}") from None
                if path.suffix.lower() in _TO_BE_SAVED_AGAIN:
                    kind = path.suffix[1:].upper()
                    raise SightlineError(
                        f"{path}: {kind} files are not read; save it as DOCX or PDF."
                    ) from None
                kinds = "an HTML, Markdown, PDF, DOCX or EPUB article"
                either = f"There is no {kinds[3:]}" if path.is_dir() else f"It is not {kinds}"
                raise SightlineError(f"{error} {either} either.") from None
    detail(f"{counted(len(found), 'file or folder', 'files or folders')} to read")
    return found


def _images_of(path: Path) -> str | None:
    """What an image, or a folder of images, has of them; None of anything else."""
    from sightline.image_headers import recognise
    from sightline.images import FORMATS
    from sightline.readers.page_folder import images_in

    if path.is_dir():
        return "holds images alone" if images_in(path) else None
    if not path.is_file():  # a pipe would be waited for
        return None
    with path.open("rb") as file:
        return "is an image alone" if recognise(file.read(64)) in FORMATS else None


def not_over_inputs(output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse a file to write that is one of those to read; folders are those of corpora."""
    from sightline.corpus import read

    if output is None or not output.is_file():
        return
    files = [read(one).file if one.is_dir() else one for one in inputs if one.exists()]
    if any(map(output.samefile, files)):
        raise SightlineError(f"{output} is what is read, and would be lost; write to another file.")


def say_packed_images(inputs: Iterable[Path], features: Path | None, remedy: str = "") -> None:
    """Say that images inside of WebDataset shards are not looked for, if there are such."""
    from sightline.corpus import is_packed

    for path in inputs if features is None else ():
        if is_packed(path):
            say(
                f"{path}: images inside of .tar files are not looked at here; unpack them with "
                f"'sightline convert {path} FOLDER --to native'{remedy}."
            )


def no_document(problems: Problems) -> SightlineError:
    """The error for inputs that gave no document."""
    why = "the problems above say why" if problems.count else "the input holds none"
    return SightlineError(f"No document could be linked; {why}.")


def decoding_processes() -> DecodePool:
    """The processes that decode images, one for each core; a context manager."""
    from sightline.decode_pool import DecodePool

    pool = DecodePool()
    detail(f"{counted(pool.workers, 'process decodes', 'processes decode')} images")
    return pool


def open_model(name: str) -> Model:
    """A trained model, or a CLIP or SigLIP folder."""
    from sightline.link_records import open_model as opened

    with timed(f"model {name} opened"):
        model = opened(name)
    detail(f"image network {model.backbone}, {model.feature_dimension} features")
    return model
