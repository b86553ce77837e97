"""Opens what several commands work with, and tells with `--verbose` what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.console import detail, timed
from sightline.problems import SightlineError

if TYPE_CHECKING:
    from sightline.clip_model import ClipModel
    from sightline.decode_pool import DecodePool
    from sightline.model import LinkModel


def articles_and_corpora(inputs: Iterable[Path]) -> list[Path]:
    """The inputs, with the articles in and below plain folders in place of these."""
    from sightline.article_folders import without_folders
    from sightline.corpus import read

    found = without_folders(inputs)
    for path in found:
        if path.is_dir():
            try:
                read(path)
            except SightlineError as error:
                kinds = "HTML, Markdown, PDF, DOCX or EPUB"
                raise SightlineError(f"{error} There is no {kinds} article either.") from None
    detail(f"{len(found):,} files or folders to read")
    return found


def decoding_processes() -> DecodePool:
    """The processes that decode images, one for each core; a context manager."""
    from sightline.decode_pool import DecodePool

    pool = DecodePool()
    detail(f"{pool.workers} processes decode images")
    return pool


def open_model(name: str) -> LinkModel | ClipModel:
    """A trained model, or a CLIP or SigLIP folder."""
    from sightline.link_records import open_model as opened

    with timed(f"model {name} opened"):
        model = opened(name)
    detail(f"image network {model.backbone}, {model.feature_dimension} features")
    return model
