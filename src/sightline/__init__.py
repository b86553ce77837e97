"""Sightline finds which sentence each image of a document belongs to.

- An article: `link_file("article.html")` gives its links.
- Documents of a corpus: `read(path)` gives each `Document`, `LinkModel.from_pretrained("default")`
  the bundled model, and `model.link(document)` the links, a list of `Link` that knows its document.
- Documents out of memory: `documents_from(rows)`; to a file: `write_jsonl`.
- Tables: `links.to_pandas()` of one document, `links_table(results)` of many.
- Scores against true links: `evaluate(model, corpus)`; `metrics` for matrices of your own.
- Image features on disk: `FeatureStore`.

Whatever a user can act on is a `SightlineError`. The names are loaded when they are first used, so
that `import sightline` is instant. `docs/python.md` shows each of them at work.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sightline import metrics
    from sightline.article_links import link_file
    from sightline.corpus import Corpus, read
    from sightline.document_links import DocumentLinks, links_table
    from sightline.document_rows import documents_from
    from sightline.documents import Document
    from sightline.evaluation import Evaluation, evaluate
    from sightline.features import FeatureStore
    from sightline.linking import Link
    from sightline.model import LinkModel
    from sightline.problems import SightlineError
    from sightline.readers.native import write_jsonl

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "Document",
    "DocumentLinks",
    "Evaluation",
    "FeatureStore",
    "Link",
    "LinkModel",
    "SightlineError",
    "documents_from",
    "evaluate",
    "link_file",
    "links_table",
    "metrics",
    "read",
    "write_jsonl",
]

_MODULES = {
    "Corpus": "corpus",
    "Document": "documents",
    "DocumentLinks": "document_links",
    "Evaluation": "evaluation",
    "FeatureStore": "features",
    "Link": "linking",
    "LinkModel": "model",
    "SightlineError": "problems",
    "documents_from": "document_rows",
    "evaluate": "evaluation",
    "link_file": "article_links",
    "links_table": "document_links",
    "metrics": "metrics",  # a module of functions
    "read": "corpus",
    "write_jsonl": "readers.native",
}

# Not for type checkers, which would take any name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'sightline' has no attribute {name!r}")
        module = import_module(f"sightline.{_MODULES[name]}")
        return module if name == _MODULES[name] else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
