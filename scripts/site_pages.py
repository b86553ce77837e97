"""What MkDocs has to know to show this repository's pages as a site: a hook that mkdocs.yml names.

Some pages of the site lie outside `docs/`: `PAGES` says which, so that nothing is kept twice. A
link that leaves `docs/` works where the repository is browsed. On the site it leads to the page
made of the file; a file that is no page is named by its path, because nobody knows here where the
repository can be had. A link to a file that does not exist stays, and fails the build.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Pages of the site by the files of the repository that they show.
PAGES = {
    "src/sightline/data/default/README.md": "reference/model_card.md",
    "results/README.md": "results.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "readme.md",
}
#: What a browser fetches by itself when it shows a page.
_FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|(?:url\(|@import)\s*["']?(?:https?:)?//[^"')\s]*"""
)


class RepositoryPages(Treeprocessor):
    """Turns links out of `docs/` into links to pages, or into the path of what they mean."""

    page: Page

    def run(self, root: Element) -> None:
        """Change one page, before MkDocs looks at its links."""
        for kind, attribute in (("a", "href"), ("img", "src")):
            for link in list(root.iter(kind)):
                self._lead(link, attribute)
        for cell in root.iter("td"):
            for code in cell.iter("code"):
                # Repositories are browsed with GitHub's Markdown, where a bar in a table needs it.
                code.text = AtomicString((code.text or "").replace("\\|", "|"))

    def _lead(self, link: Element, attribute: str) -> None:
        path, mark, anchor = (link.get(attribute) or "").partition("#")
        source = Path(self.page.file.abs_src_path or "")
        meant = Path(os.path.normpath(source.parent / path))
        within = DOCS in source.parents and DOCS in meant.parents
        if not path or ":" in path or within or not meant.is_relative_to(ROOT):
            return
        file = meant.relative_to(ROOT).as_posix()
        page = meant.relative_to(DOCS) if DOCS in meant.parents else PAGES.get(file)
        if page is not None:
            way = os.path.relpath(page, Path(self.page.file.src_uri).parent)
            link.set(attribute, Path(way).as_posix() + mark + anchor)
        elif meant.exists() and attribute == "href":
            _name(link, file)


def _name(link: Element, path: str) -> None:
    """Make text of a link: its words, then the path, unless the words say it already."""
    link.tag = "span"
    link.attrib.clear()
    words = "".join(link.itertext())
    if words.strip() != path:
        last = link[-1] if len(link) else None
        if last is None:
            link.text = f"{link.text or ''} ("
        else:
            last.tail = f"{last.tail or ''} ("
        SubElement(link, "code").text = path
        link[-1].tail = ")"


class _RepositoryPagesExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # Before MkDocs' own, which is the last and complains.
        md.treeprocessors.register(_PAGES, "repository_pages", 1)


_PAGES = RepositoryPages()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the rewriting of links among the Markdown extensions."""
    config.markdown_extensions.append(_RepositoryPagesExtension())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside `docs/`."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Say which page's links come next."""
    _PAGES.page = page
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that asks another server for anything: who reads what is nobody's business."""
    for file in Path(config.site_dir).rglob("*"):
        if file.suffix in (".html", ".css") and (found := _FETCHED.search(file.read_text("utf-8"))):
            raise PluginError(f"{file.name} would fetch {found.group()!r} from elsewhere.")
