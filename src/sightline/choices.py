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
#: Where shards are worked on.
Engine = Literal["local", "ray", "spark"]
