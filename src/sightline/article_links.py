"""Articles in, link records out, and what their page is drawn from."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sightline.articles import Article, ArticleImages, read_article
from sightline.choices import MaxLinks, Policy, Unit
from sightline.clip_model import Model
from sightline.decode_pool import DecodePool
from sightline.document_links import DocumentLinks
from sightline.fetching import Fetcher
from sightline.image_features import ImageSource
from sightline.link_records import link_records, open_model
from sightline.linking import Link, LinkChoices
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.shown_article import (
    Picture,
    ShownArticle,
    ShownImage,
    encode_picture,
    picture_side,
)

#: Share of unknown words: of plain English the bundled model lacks next to none, of German more
#: than half; but of French and Spanish it knows up to nine words in ten.
_MANY_UNKNOWN = 0.4
#: Share of common words: 0.17 or more in 1,693 English guides and textbook sections, 0.02 to 0.12
#: in seven other languages of Europe.
_FEW_COMMON = 0.15
#: Characters: a shorter text, such as a heading, may hold no common word.
_SHORT = 60


def language_doubt(model: Model, article: Article) -> str | None:
    """What to say of an article that the model knows too few words of, if that is so."""
    if not isinstance(model, LinkModel):
        return None
    sentences = article.document.sentences
    share = model.unknown_words(sentences)
    if share > _MANY_UNKNOWN:
        found = f"knows only {1 - share:.0%} of the words"
    elif sum(map(len, sentences)) >= _SHORT and model.common_words(sentences) < _FEW_COMMON:
        found = "finds next to none of its most common words"
    else:
        return None
    return (
        f"the model {found}, as if the text were in a language or about things that it was not "
        "trained on; do not rely on these links."
    )


def read_articles(
    paths: Iterable[Path],
    problems: Problems,
    unit: Unit = "sentence",
    fetch: Fetcher | None = None,
    images_beside: bool = False,
    folders: Iterable[Path] = (),
) -> Iterator[Article]:
    """The articles that can be read; one that cannot is a problem."""
    for path in paths:
        try:
            yield read_article(
                path, unit=unit, fetch=fetch, images_beside=images_beside, folders=folders
            )
        except SightlineError as error:
            problems.add(path, None, None, str(error).removeprefix(f"{path}: "))


def link_file(
    path: str | Path,
    model: Model | str | Path = "default",
    policy: Policy = "assignment",
    max_links: MaxLinks = "all",
    *,
    threshold: float = 0.0,
    min_confidence: float = 0.0,
    unit: Unit = "sentence",
    folder: str | Path | None = None,
    fetch: bool = False,
) -> DocumentLinks:
    """The links of an HTML, Markdown, text, PDF, DOCX or EPUB file, as `sightline link` finds them.

    Its sentences and images are those of `document` of the result; `images` says which of them
    could be read.

    - `model`: "default", a model folder, or a model that is open already, which is better for many
      files.
    - `policy`: "assignment", "dense", "top-k", "threshold" or "mmc4", described at `linking.link`.
    - `max_links`: the most links: "all", which is as many as the smaller of sentences and images,
      "half" of it, or a number.
    - `threshold`: for the policy of this name, the similarity that a link has to exceed.
    - `min_confidence`: from 0 to 1; less sure links are left out.
    - `unit`: "sentence", or "paragraph" to link whole blocks of text.
    - `folder`: the folder that holds the file and its images, if they lie outside the file's own.
    - `fetch`: fetch remote images, from public addresses only, as `--fetch` does.
    """
    opened = open_model(model) if isinstance(model, str | Path) else model
    article = read_article(
        path,
        unit=unit,
        fetch=Fetcher() if fetch else None,
        images_beside=True,
        folders=() if folder is None else [Path(folder)],
    )
    if doubt := language_doubt(opened, article):
        warnings.warn(f"{path}: {doubt}", stacklevel=2)
    choices = LinkChoices(policy, max_links, threshold, min_confidence)
    with DecodePool() as pool:
        record = link_article(opened, article, choices, pool)
    statuses = [{key: one[key] for key in ("id", "status", "reason")} for one in record["images"]]
    return DocumentLinks(article.document, (Link(**one) for one in record["links"]), statuses)


def link_article(
    model: Model,
    article: Article,
    choices: LinkChoices,
    pool: DecodePool | None,
    source: ImageSource | None = None,
) -> dict[str, Any]:
    """The link record of an article, with `matrix`: the keys of any document and what is known.

    Beside those: `title`, `lang`, `spans` of the sentences in the text form, and for each image
    its `alt`, `caption` and `position` there; `left_out` counts what was not read. The features
    come from `source`; without one, the article's images are decoded.
    """
    if not model.reads_images:
        raise SightlineError(
            "The model's image network does not come with the package, so that it cannot read the "
            "images of an article; use another model."
        )
    source = source or ArticleImages([article], model.image_backbone, pool)
    (record,) = link_records(model, [article.document], source, choices, matrix=True)
    record["images"] = [
        {**status, "alt": image.alt, "caption": image.caption, "position": image.position}
        for status, image in zip(record["images"], article.images, strict=True)
    ]
    extra = article.document.extra
    matrix = record.pop("matrix")
    record |= {key: extra[key] for key in ("title", "lang", "spans", "left_out")}
    return {**record, "matrix": matrix}


def shown_article(
    article: Article, record: dict[str, Any], pool: DecodePool, facts: tuple[str, ...] = ()
) -> ShownArticle:
    """What the page of an article is drawn from; its images are decoded in isolation."""
    pictures = _pictures(article, pool)
    images = tuple(
        ShownImage(
            name=image.name,
            block=on_page.block,
            offset=on_page.offset,
            picture=pictures.get(index),
            status=status["status"],
            reason=status["reason"],
            alt=image.alt,
            caption=image.caption,
            caption_blocks=on_page.caption_blocks,
        )
        for index, (image, on_page, status) in enumerate(
            zip(article.images, article.page.images, record["images"], strict=True)
        )
    )
    similarity_SV = np.array(record["matrix"], np.float64).reshape(
        len(record["sentences"]), len(images)
    )
    return ShownArticle(
        title=article.page.title or article.path.stem,
        blocks=article.page.blocks,
        spans=tuple((start, end) for start, end in record["spans"]),
        images=images,
        links=tuple(
            Link(one["sentence"], one["image"], one["score"], one["confidence"])
            for one in record["links"]
        ),
        language=article.page.language,
        similarity_SV=similarity_SV,
        facts=facts,
        left_out=record["left_out"],
    )


def _pictures(article: Article, pool: DecodePool) -> dict[int, Picture]:
    side = picture_side(len(article.images))
    contents = {v: i.content for v, i in enumerate(article.images) if i.content is not None}
    decoded = pool.decode_many(contents.values(), side)
    return {
        index: encode_picture(result.pixels, side)
        for index, result in zip(contents, decoded, strict=True)
        if result.pixels is not None
    }
