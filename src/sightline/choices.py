"""The words that one chooses from, on the command line, in Python and over HTTP alike.

What does the work imports them from here, and so does the command line, which has to start at once.
The choices of training are in `settings`.
"""

from __future__ import annotations

from typing import Literal, get_args

#: How a similarity matrix becomes links; `linking.link` describes each.
Policy = Literal["assignment", "dense", "top-k", "threshold", "mmc4"]
#: The most links that a document gets: `all` is min(sentences, images), `half` half of it.
MaxLinks = Literal["all", "half"] | int
#: What one sentence of a document is: a sentence of the text, or a whole block.
Unit = Literal["sentence", "paragraph"]
#: Articles that name their image files, or have none, and articles that hold them.
PageKind = Literal["html", "markdown", "text"]
ContainerKind = Literal["pdf", "docx", "epub"]
ArticleKind = Literal[PageKind, ContainerKind]
#: What the ending of a file says of an article (`service/page/intake.js` knows them too).
ARTICLE_SUFFIXES: dict[str, ArticleKind] = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".pdf": "pdf",
    ".docx": "docx",
    ".docm": "docx",
    ".epub": "epub",
}
#: Those of pages; a text is one only where it is named, as many folders hold others.
PAGE_SUFFIXES = frozenset(
    suffix
    for suffix, kind in ARTICLE_SUFFIXES.items()
    if kind in get_args(PageKind) and kind != "text"
)
#: What `link` writes, and the service answers; but for web annotations also how the files end.
LinkFormat = Literal["jsonl", "html", "annotations", "csv"]
#: What the ending of a file says of its format.
LINK_SUFFIXES: dict[str, LinkFormat] = {
    **{f".{name}": name for name in get_args(LinkFormat) if name != "annotations"},
    ".htm": "html",
    ".json": "annotations",
    ".jsonld": "annotations",
}
#: What `pairs` writes.
PairFormat = Literal["jsonl", "csv", "webdataset"]
#: What `convert` writes.
CorpusFormat = Literal["native", "hessel2019", "mmc4", "obelics", "webdataset"]
#: The splits that corpora usually have; a corpus may have others.
SPLITS = ("train", "val", "test")
#: What `evaluate` scores besides models.
BASELINES = ("random", "object-detection")
#: Where shards are worked on.
Engine = Literal["local", "ray", "spark"]
