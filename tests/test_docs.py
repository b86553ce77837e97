"""The documentation: links that lead somewhere, and pages and figures that are as the code is."""

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

import sightline

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
    ROOT / "src" / "sightline" / "data" / "default" / "README.md",
]
_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*([^)\s]+)[^)]*\)|^\[[^\]]+\]:\s+(\S+)|(?:href|src)=\"([^\"]+)\"", re.M)


def anchors(text):
    """What can be linked to within a page, as repositories show it and as the site does."""
    names = re.findall(r"^::: (\S+)", text, re.MULTILINE)  # of the site
    found = Counter()
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", _FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found[slug] += 1
    repeated = {f"{slug}-{n}" for slug, count in found.items() for n in range(1, count)}
    return {*names, *found, *repeated}


def links(text):
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))
    return ["".join(groups) for groups in _LINK.findall(text)]


def broken_links(page):
    """The links of a page to a file or a heading that is not there."""
    broken = []
    for link in links(page.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (
            anchor and file.suffix == ".md" and anchor not in anchors(file.read_text("utf-8"))
        ):
            broken.append(link)
    return broken


def test_every_link_leads_somewhere():
    broken = {str(page.relative_to(ROOT)): found for page in PAGES if (found := broken_links(page))}
    assert not broken
    assert len(PAGES) > 20
    assert sum(len(links(page.read_text("utf-8"))) for page in PAGES) > 100


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# A heading, `coded`\n\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](there.md) [b](there.md#a-heading-coded) [`c`](#here) ![d](there.md) [e](https://x)\n"
        "`[f](code.md)`\n\n```\n[g](fence.md)\n```\n"
        "[h](gone.md) [i](there.md#no-heading) [j](#gone) ![k\nl](gone.png)\n"
        '<img alt="m" src="o.png">\n'
    )
    assert broken_links(page) == ["gone.md", "there.md#no-heading", "#gone", "gone.png", "o.png"]


@pytest.fixture
def scripts(monkeypatch):
    """Give the modules of `scripts/` by name."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module


def test_the_reference_of_the_command_line_is_what_the_commands_say(scripts):
    page = (DOCS / "reference" / "cli.md").read_text("utf-8")
    assert page == scripts("cli_reference").reference(), "run python scripts/cli_reference.py"
    assert len(re.findall(r"^##+ \w+", page, re.MULTILINE)) > 20
    assert len(re.findall(r"^- `--?\w", page, re.MULTILINE)) > 150


def test_the_reference_of_the_command_line_names_every_variable():
    page = (DOCS / "reference" / "cli.md").read_text("utf-8")
    source = "".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))
    # What the service hands to its own processes is nobody else's to set.
    variables = set(re.findall(r"\"(SIGHTLINE_[A-Z_]+)\"", source)) - {"SIGHTLINE_SERVE"}
    assert len(variables) > 3
    assert not {variable for variable in variables if f"`{variable}`" not in page}


def test_the_reasons_to_leave_something_out_are_those_of_the_readers(scripts):
    page = (DOCS / "formats.md").read_text("utf-8")
    assert page == scripts("left_out_reasons").page_with(page), "run scripts/left_out_reasons.py"
    reasons = page.partition("<!-- reasons -->")[2].partition("<!-- end of reasons -->")[0]
    # A literal, a constant of a module, a value of a dictionary, of a tuple, of an f-string.
    for reason in (
        "short",
        "turned text",
        "deleted text",
        "page footer",
        "table of contents (bytes)",
    ):
        assert f"`{reason}`" in reasons
    assert reasons.count("`") > 2 * 80


def test_every_public_name_is_documented():
    page = (DOCS / "reference" / "python.md").read_text("utf-8")
    named = set(re.findall(r"^::: (\S+)", page, re.MULTILINE))
    assert {f"sightline.{name}" for name in sightline.__all__} <= named
    for name in sightline.__all__:
        words = getattr(sightline, name).__doc__
        # A dataclass without words gets its signature for a docstring.
        assert words and not words.startswith(f"{name}("), name
    for module in named - {f"sightline.{name}" for name in sightline.__all__}:
        assert importlib.import_module(module).__doc__


def test_the_example_of_the_reference_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, colour in (("boat.jpg", "teal"), ("cup.jpg", "gold")):
        Image.new("RGB", (300, 200), colour).save(name)
    page = (DOCS / "reference" / "python.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(code, {})  # the page's own lines
    assert re.match(r"[01] [01] \S+ \S+\n", capsys.readouterr().out)


def test_the_figures_of_the_method_are_what_the_functions_give(scripts):
    drawings = scripts("draw_method").drawings()
    drawn = {file.stem: file.read_text("utf-8") for file in (DOCS / "how_it_works").glob("*.svg")}
    assert drawn == drawings, "run python scripts/draw_method.py docs/how_it_works"
    page = (DOCS / "how_it_works.md").read_text("utf-8")
    for name, drawing in drawings.items():
        assert f"(how_it_works/{name}.svg)" in page
        assert "<title" in drawing and "<desc" in drawing and "prefers-color-scheme" in drawing


def test_the_numbers_of_the_method_are_what_the_functions_give(scripts):
    page = (DOCS / "how_it_works.md").read_text("utf-8")
    said = [line.removeprefix("- ").strip("*") for line in page.splitlines() if line[:2] == "- "]
    worked = scripts("method_example").worked()
    assert sorted(said) == sorted(line for lines in worked.values() for line in lines)
    assert len(said) == 14


def test_what_the_site_is_built_with_is_locked():
    entries = (ROOT / "locks" / "docs.txt").read_text().replace(" \\\n", "").splitlines()[1:]
    assert all(re.match(r"[\w.-]+==\S+ +--hash=sha256:", entry) for entry in entries)
    pins = dict(entry.split()[0].split("==") for entry in entries)
    assert {"mkdocs", "mkdocs-material", "mkdocstrings-python", "griffelib"} <= pins.keys()
    for line in (ROOT / "constraints.txt").read_text().splitlines()[1:]:
        name, _, version = line.partition("==")
        assert pins.get(name.lower().replace("_", "-"), version) == version
