"""A folder of HTML and Markdown pages with their images: one document a page.

A page is known by its path in the folder, and so are its images. Nothing outside the folder is
read, nothing is fetched, and what a page refers to out there is counted.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote

from sightline.choices import ARTICLE_SUFFIXES, PAGE_SUFFIXES, Unit
from sightline.documents import Document
from sightline.html_writing import WRITTEN_BY_US
from sightline.image_headers import EXTENSIONS, recognise
from sightline.image_headers import SUFFIXES as IMAGE_SUFFIXES
from sightline.pages import LeftOut, Page, PageImage, page_to_document
from sightline.problems import Problems, SightlineError
from sightline.readers import html, markdown, text
from sightline.readers.html_images import is_remote
from sightline.readers.recognition import are_results

TEXT_SUFFIX = ".txt"
_MARKDOWN = frozenset((".md", ".markdown"))
_OTHER_ARTICLES = ARTICLE_SUFFIXES.keys() - PAGE_SUFFIXES - {TEXT_SUFFIX}
# What browsers call the folder of a saved page, after the page's own name: its pages are frames.
_SAVED_FOLDERS = (
    *("_files", ".files", "-files", "_file", "-Dateien", "_fichiers", "_archivos", "_arquivos"),
    *("_bestanden", "_filer", "_pliki", "_soubory", "_ficheiros", "_elemei"),
)
_DRIVE = re.compile(r"[a-zA-Z]:[\\/]")

_REMOTE, _OUTSIDE, _MISSING = "remote, not fetched", "outside the folder", "missing"
_UNSUPPORTED = "of a kind that is never read, such as SVG"


def is_markdown(path: Path) -> bool:
    """Say whether a page is read as Markdown."""
    return path.suffix.lower() in _MARKDOWN


def read_page(path: Path) -> Page:
    """Read one HTML, Markdown or text file, which its suffix tells apart."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise SightlineError("The page is not a regular file.")
    suffix = path.suffix.lower()
    limit = markdown.MAX_BYTES if is_markdown(path) else html.MAX_BYTES
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise SightlineError(f"The page cannot be read: {error.strerror}.") from error
    if is_markdown(path):
        return markdown.read_markdown(data)
    if suffix == TEXT_SUFFIX:
        return text.read_text(data)
    return html.read_html(data, xml=suffix == ".xhtml")


@dataclass
class PageFolder:
    """The pages of a folder; iterating reads them and fills the counts."""

    folder: Path
    unit: Unit = "paragraph"
    links_from_layout: bool = False
    minimum_tokens: int = 0
    #: Leave out images whose file is missing or of a kind that is never read; else they stay, for
    #: their status to be told later.
    skip_missing: bool = False
    #: Images of the documents given so far that stay, but have no file, or one of such a kind.
    missing: int = 0
    unsupported: int = 0
    #: What reads a page; `isolation` has one that keeps to limits.
    read: Callable[[Path], Page] = read_page

    def documents(self, problems: Problems, dropped: Counter[str]) -> Iterator[Document]:
        """Yield a document for each page with text and an image, by path.

        A page that cannot be read is a problem. `dropped` counts the pages that have no text or no
        image, and what was left out of the others.
        """
        if not self.folder.is_dir():
            what = "is not a folder" if self.folder.exists() else "no such folder"
            raise SightlineError(f"{self.folder}: {what}; name the folder that the pages lie in.")
        root = self.folder.resolve()
        for path in find_pages(root, dropped):
            name = path.relative_to(root).as_posix()
            if not _is_text(name):
                problems.add(self.folder, None, None, f"the name {name!r} is not valid UTF-8")
                continue
            try:
                page = self.read(path)
            except SightlineError as error:
                reason = str(error).removeprefix(f"{path}: ")
                problems.add(self.folder / name, None, None, reason)
                continue
            page, unusable = self._with_files(page, path, root)
            document = page_to_document(
                page,
                name,
                unit=self.unit,
                links_from_layout=self.links_from_layout,
                minimum_tokens=self.minimum_tokens,
            )
            if not document.images:
                dropped["pages without an image"] += 1
            elif not document.sentences:
                dropped["pages without text"] += 1
            else:
                self.missing += unusable[_MISSING]
                self.unsupported += unusable[_UNSUPPORTED]
                _count(document, dropped)
                yield document

    def _with_files(self, page: Page, path: Path, root: Path) -> tuple[Page, Counter[str]]:
        """Give the page with the paths of its images, and how many of these are of no use."""
        left_out = LeftOut()
        left_out.update(page.left_out)
        images: list[PageImage] = []
        unusable: Counter[str] = Counter()
        for image in page.images:
            source, reason = find_image(image, path.parent, root)
            if reason is None and _is_unsupported(source, root):
                reason = _UNSUPPORTED
            if reason in (_MISSING, _UNSUPPORTED) and not self.skip_missing:
                unusable[reason] += 1
                reason = None
            if reason is None:
                images.append(replace(image, source=source, alternatives=()))
            else:
                left_out.images[reason] += 1
        return replace(page, images=tuple(images), left_out=left_out), unusable


def with_images_beside(page: Page, path: Path) -> Page:
    """Give a page that refers to no image those of its folder, if no other page or text is there.

    They follow the text: a folder with a text and images is one document.
    """
    if page.images or any(
        file.suffix.lower() in PAGE_SUFFIXES | {TEXT_SUFFIX} and file.name != path.name
        for file in path.parent.iterdir()
    ):
        return page
    last = len(page.blocks) - 1
    names = (os.fsencode(name) for name in images_in(path.parent))
    return replace(page, images=tuple(PageImage(quote(name), last) for name in names))


def images_in(folder: Path) -> list[str]:
    """Give the names of the image files in a folder, in an order in which 2 stands before 10."""
    names = (file.name for file in folder.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)
    return sorted((name for name in names if not name.startswith(".")), key=_by_numbers)


def _by_numbers(name: str) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|\D+", name.casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def find_pages(
    root: Path, dropped: Counter[str], suffixes: Container[str] = PAGE_SUFFIXES
) -> list[Path]:
    """Give the pages below a resolved folder, by path; counts what is not looked into."""
    pages = []

    def count_unreadable(_: OSError) -> None:
        dropped["folders that cannot be read"] += 1

    for place, folders, names in os.walk(root, onerror=count_unreadable):
        stems = {Path(name).stem for name in names if Path(name).suffix.lower() in PAGE_SUFFIXES}
        saved = {stem + ending for stem in stems for ending in _SAVED_FOLDERS}
        dropped["folders whose name begins with a dot"] += sum(f.startswith(".") for f in folders)
        dropped["links to folders"] += sum(Path(place, f).is_symlink() for f in folders)
        for folder in (Path(place, f) for f in folders if f in saved and not f.startswith(".")):
            if not folder.is_symlink():
                count = _count_files(folder, suffixes, count_unreadable)
                dropped["pages in folders of saved pages"] += count
        folders[:] = [f for f in folders if f not in saved and not f.startswith(".")]
        for path in (Path(place, name) for name in names):
            if path.suffix.lower() in IMAGE_SUFFIXES:
                continue
            if reason := _why_no_page(path, root, suffixes):
                dropped[reason] += 1
            else:
                pages.append(path)
    return sorted(pages)


def _why_no_page(path: Path, root: Path, suffixes: Container[str]) -> str | None:
    """What a file is counted as that is no page to read; None if it is one."""
    suffix = path.suffix.lower()
    if path.name.startswith("~$"):  # Word's note of who has a file open, with the ending of that
        return "files that are no pages"
    if suffix not in suffixes:
        if suffix in _OTHER_ARTICLES:
            return "PDF, DOCX and EPUB files, which no corpus is built from"
        return "files that Sightline wrote" if are_results(path) else "files that are no pages"
    # `resolve` raises where a link leads to itself.
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
        return "links to pages outside the folder"
    if suffix in (".html", ".htm") and _is_ours(path):
        return "files that Sightline wrote"
    return None


def _count_files(
    folder: Path, suffixes: Container[str], on_error: Callable[[OSError], None]
) -> int:
    names = (name for _, _, names in os.walk(folder, onerror=on_error) for name in names)
    return sum(Path(name).suffix.lower() in suffixes for name in names)


def _is_ours(path: Path) -> bool:
    """Whether a page is one that shows results, such as a run before may have left there."""
    if not path.is_file():  # a pipe would be waited for
        return False
    try:
        with path.open("rb") as file:
            return WRITTEN_BY_US.encode() in file.read(200)
    except OSError:  # who reads it says why it cannot be
        return False


def find_image(image: PageImage, beside: Path, root: Path) -> tuple[str, str | None]:
    """Find the file of an image: its path in the root, and why it is none to use, or None.

    Both folders are resolved ones. Of several sources the first that exists is taken. A data URI
    is its own file.
    """
    reason, missing = _REMOTE, None
    for source in (image.source, *image.alternatives):
        if source[:5].lower() == "data:":
            return source, None
        if is_remote(source):
            continue
        for number, path in enumerate(_paths(source, beside, root)):
            if path is None:
                reason = _OUTSIDE
                continue
            name = path.relative_to(root).as_posix()
            if _is_file(path):
                if path.resolve().is_relative_to(root) and _is_text(name):
                    return name, None
                reason = _OUTSIDE
            elif number == 0 and _is_text(name):
                missing = missing or name
    return (missing, _MISSING) if missing else (image.source, reason)


def _is_unsupported(source: str, root: Path) -> bool:
    """Whether decoding an image would give the status `unsupported`; its first bytes tell."""
    if source[:5].lower() == "data:":
        return source[:14].lower() == "data:image/svg"
    try:
        with (root / source).open("rb") as file:
            kind = recognise(file.read(64))
    except OSError:  # who decodes it says why it cannot be
        return False
    return kind is not None and kind not in EXTENSIONS


def _paths(source: str, beside: Path, root: Path) -> Iterator[Path | None]:
    """Yield the files that a source may mean, likeliest first; None for one outside the folder.

    A question mark begins a query, unless a file was saved with it in its name. A slash at the
    start means the root of a site, which the folder is taken for, if there is such a file.
    """
    if source[:5].lower() == "file:" or _DRIVE.match(source) or "\0" in source:
        yield None
        return
    source = source.replace("\\", "/").partition("#")[0]
    for written in dict.fromkeys((source.partition("?")[0], source)):
        for name in dict.fromkeys((unquote(written), written)):
            of_site = name.startswith("/")
            path = Path(os.path.normpath((root if of_site else beside) / name.lstrip("/")))
            is_inside = bool(name) and path.is_relative_to(root)
            yield path if is_inside and (not of_site or _is_file(path)) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or that no file can have
        return False


def _is_text(name: str) -> bool:
    """Say whether a name can be written as JSON: it may hold bytes that are no text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _count(document: Document, dropped: Counter[str]) -> None:
    left_out = document.extra["left_out"]
    for reason, count in left_out.get("text", {}).items():
        dropped[f"characters: {reason}"] += count
    for reason, count in left_out.get("images", {}).items():
        dropped[f"images: {reason}"] += count
