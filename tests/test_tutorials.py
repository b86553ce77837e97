"""The tutorials and how-to pages: what they show runs and prints what they say, links lead on."""

import ast
import re
import sys
from pathlib import Path

import pytest
from command_server import programs
from shown_commands import DOCS, ROOT, Pages, blocks

PAGES = [
    *sorted(DOCS.glob("tutorials/*.md")),
    *sorted(DOCS.glob("howto/*.md")),
    ROOT / "CONTRIBUTING.md",
]
#: Blocks that a test cannot run: long training, datasets, a running service.
MOST_NOT_RUN = 10
MOST_IMAGE_BYTES = 125_000
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_TABLE = re.compile(r"^\| (?:if it says|what you see) \|", re.MULTILINE)
_MESSAGE = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return Pages(tmp_path_factory.mktemp("pages"), programs())


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has its imports done")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_what_a_page_shows_runs_and_prints_what_it_says(page, pages):
    pages.finished(page)


def test_few_blocks_are_not_run_and_each_says_why():
    left_out = [
        (page.name, block)
        for page in PAGES
        for block in blocks(page.read_text())
        if block.language in ("sh", "python", "diff", "") and not block.is_run
    ]
    assert 0 < len(left_out) <= MOST_NOT_RUN
    for name, block in left_out:
        assert re.fullmatch(r"not run: .{10,}", block.comment), (name, block)


def test_the_recipes_of_changes_say_how_many_files_they_touch():
    words = {"One file": 1, "Two files": 2, "Three files": 3}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    _, similarity, _, output = re.split(r"^### A new ", text, flags=re.M)
    for recipe in (similarity, output):
        said = re.search(r"^(\w+ files?) in `src`", recipe, re.M)[1]
        assert words[said] == len(set(re.findall(r"^--- (src/\S+)", recipe, re.M)))


def test_every_command_has_a_page_that_uses_it():
    from typer.main import get_command

    from sightline.cli import app

    commands = get_command(app).commands
    assert len(commands) > 15
    for command in commands:
        page = (DOCS / "howto" / f"{command}.md").read_text()
        shown = "".join(block.body for block in blocks(page) if block.language == "sh")
        assert f"sightline {command}" in shown, command
        assert f"](../reference/cli.md#{command})" in page, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_pictures_are_there(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = 0
    for target, anchor in _LINK.findall(text):
        if target.startswith("https://"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.is_file(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}#{anchor}"
        if file.suffix in (".jpg", ".png"):
            assert file.stat().st_size < MOST_IMAGE_BYTES
        found += 1
    assert found


def anchors(file):
    """The anchors of a page's headings, as sites of Markdown make them."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in headings
    }


def test_messages_that_pages_explain_are_in_the_source():
    """Each `...` stands for what a message is about, each part between for words of one string."""
    said = "\n".join(strings_of(file) for file in (ROOT / "src").rglob("*.py"))
    seen = 0
    for page in PAGES:
        _, *tables = _TABLE.split(page.read_text())
        for message in _MESSAGE.findall("".join(tables)):
            for part in re.split(r"\s*\.\.\.\s*", message):
                assert part in said, f"{page.name}: {part!r}"
                seen += 1
    assert seen > 30


def strings_of(file: Path) -> str:
    """Every string of a module, joined where the source only breaks the line."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts = (getattr(part, "value", "") for part in node.values)
            found.append("".join(part if isinstance(part, str) else "…" for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return "\n".join(found)
