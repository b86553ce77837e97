"""Write the reasons for which readers leave something out into docs/formats.md.

    python scripts/left_out_reasons.py

They are found in the source of the readers: what counts in `left_out`, is handed over or kept as a
`reason`, or comes out of a function whose name says so. `tests/test_docs.py` fails when the page is
not what this makes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sightline"
PAGE = ROOT / "docs" / "formats.md"
#: The formats, by how the names of the modules begin that read them.
FORMATS: dict[str, str | tuple[str, ...]] = {
    "HTML, and what Markdown and the chapters of EPUB become": "readers.html",
    "Markdown": "readers.markdown",
    "text": "readers.text",
    "PDF": "readers.pdf",
    "DOCX": "readers.docx",
    "EPUB": "readers.epub",
    "image files of DOCX and EPUB": "readers.contents",
    "images of folders of pages": "readers.page_folder",
    "any article": ("pages", "isolation"),
}
_LIST = re.compile(r"(?<=<!-- reasons -->\n\n).*?(?=<!-- end of reasons -->)", re.DOTALL)
_COUNTER = re.compile(r"\bleft_out\.(text|images)$")


def main() -> None:
    """Bring the page up to date."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(page_with(page), "utf-8")


def page_with(page: str) -> str:
    """The page with the list as the source has it."""
    return _LIST.sub(lambda _: reasons_list() + "\n", page)


def reasons_list() -> str:
    """The list as Markdown: a line for each format, with the reasons of its modules."""
    files = {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts): file
        for file in [*SOURCE.glob("*.py"), *(SOURCE / "readers").glob("*.py")]
    }
    named = tuple(
        chain.from_iterable([one] if isinstance(one, str) else one for one in FORMATS.values())
    )
    sources = {name: file.read_text("utf-8") for name, file in files.items()}
    for name, source in sources.items():
        if name.startswith("readers.") and "left_out." in source and not name.startswith(named):
            raise SystemExit(f"{name} leaves something out and is in no line of FORMATS")
    trees = {name: ast.parse(text) for name, text in sources.items() if name.startswith(named)}
    places = dict(chain.from_iterable(map(_places, trees.values())))
    lines = []
    for form, names in FORMATS.items():
        modules = [(tree, name) for name, tree in trees.items() if name.startswith(names)]
        reasons = {one for tree, name in modules for one in _Reasons(tree, name, places).all()}
        lines.append(f"- **{form}**: " + ", ".join(f"`{reason}`" for reason in sorted(reasons)))
    return "\n".join(lines) + "\n"


def _places(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The functions that take a `reason`, and as which of their arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [one.arg for one in node.args.args if one.arg != "self"]
            if "reason" in names:
                yield node.name, names.index("reason")


class _Reasons:
    """The reasons in one module."""

    def __init__(self, tree: ast.Module, name: str, places: dict[str, int]) -> None:
        self.tree, self.places = tree, places
        self.module: ModuleType = import_module(f"sightline.{name}")

    def all(self) -> set[str]:
        """Every string that an expression can be which stands where a reason does."""
        values = chain.from_iterable(map(self._values, self._expressions()))
        return {value for value in values if isinstance(value, str)}

    def _expressions(self) -> Iterator[ast.expr]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Subscript) and self._is_counter(node.value):
                yield node.slice
            elif isinstance(node, ast.Assign):
                yield from self._assigned(node)
            elif isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                place = self.places.get(name, len(node.args))
                yield from node.args[place : place + 1]
            elif isinstance(node, ast.Compare) and ast.unparse(node.left) == "reason":
                yield from node.comparators
            elif isinstance(node, ast.FunctionDef) and node.name.endswith("_reason"):
                returns = (one for one in ast.walk(node) if isinstance(one, ast.Return))
                yield from (one.value for one in returns if one.value is not None)

    def _assigned(self, node: ast.Assign) -> Iterator[ast.expr]:
        for target, value in _parts(node.targets[0], node.value):
            words = ast.unparse(target)
            # `self.blocks[i]` and `self.images[i]` are the reasons of blocks and images of a page.
            if words.endswith("reason") or re.fullmatch(r"self\.(blocks|images)\[\w+\]", words):
                yield value
            elif words.endswith("[_LOST]") and isinstance(value, ast.Dict):
                yield from (key for key in value.keys if key is not None)

    def _is_counter(self, node: ast.expr) -> bool:
        """Whether it is a counter of what is left out, or a local name that was given one."""
        given = self._given(node.id) if isinstance(node, ast.Name) else ()
        return any(_COUNTER.search(ast.unparse(one)) for one in (node, *given))

    def _given(self, name: str) -> Iterator[ast.expr]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                parts = _parts(node.targets[0], node.value)
                yield from (value for target, value in parts if ast.unparse(target) == name)

    def _within(self, part: ast.expr) -> Iterator[str]:
        """What a local name within an f-string can be."""
        assert isinstance(part, ast.FormattedValue)
        given = self._given(ast.unparse(part.value))
        return map(str, chain.from_iterable(map(self._values, given)))

    def _values(self, node: ast.expr) -> Iterator[Any]:
        """What an expression can be, as far as the module's constants say."""
        if isinstance(node, ast.Constant):
            yield node.value
        elif isinstance(node, ast.Name) and node.id in vars(self.module):
            yield vars(self.module)[node.id]
        elif isinstance(node, ast.BoolOp):
            yield from chain.from_iterable(map(self._values, node.values))
        elif isinstance(node, ast.Tuple):
            yield from chain.from_iterable(map(self._values, node.elts))
        elif isinstance(node, ast.IfExp):
            yield from chain(self._values(node.body), self._values(node.orelse))
        elif isinstance(node, ast.JoinedStr):
            parts = [
                [str(part.value)] if isinstance(part, ast.Constant) else list(self._within(part))
                for part in node.values
            ]
            yield from map("".join, product(*parts))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield from (value[node.slice.value] for value in self._values(node.value))
        elif isinstance(node, ast.Subscript):
            yield from chain.from_iterable(map(_members, self._values(node.value)))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".get"):
            assert isinstance(node.func, ast.Attribute)
            yield from chain.from_iterable(map(_members, self._values(node.func.value)))
            yield from chain.from_iterable(map(self._values, node.args[1:]))


def _parts(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What is given to which target: `a, b = c, d` gives to two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _members(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


if __name__ == "__main__":
    main()
