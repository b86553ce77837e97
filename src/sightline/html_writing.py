"""What all pages that we write have in common.

Each is one HTML file that asks for no other. What a document says is escaped, and the policy in the
head lets in nothing but the page's own styles and scripts, named by their hashes, so that nothing
else can run even if an escape were forgotten.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

import orjson

#: By which a page of ours is told from an article that somebody wrote.
WRITTEN_BY_US = '<meta name="generator" content="Sightline">'
# HTML has no such characters, and half a surrogate pair cannot be written at all.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Escape what a document says."""
    return escape(_CONTROLS.sub("\ufffd", text))


def page_part(name: str) -> str:
    """A style or script that comes with the package."""
    return (files("sightline") / "data" / name).read_text("utf-8")


def page_head(title: str, styles: Sequence[str], scripts: Sequence[str] = ()) -> str:
    """The beginning of a page up to its body; the title is HTML already."""
    runs = f"script-src {policy_hashes(scripts)}; " if scripts else ""
    policy = (
        f"default-src 'none'; img-src data:; style-src {policy_hashes(styles)}; {runs}"
        "base-uri 'none'; form-action 'none'"
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{WRITTEN_BY_US}\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n{_elements('style', styles)}\n</head>\n"
    )


def page_scripts(data: object, scripts: Sequence[str]) -> str:
    """What a page runs, at the end of its body, after the data that it works on."""
    text = orjson.dumps(data).decode()
    # No `<` in it could end the block or begin a comment.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    block = f'<script type="application/json" id="data">{text}</script>'
    return f"{block}\n{_elements('script', scripts)}\n"


def data_address(content: bytes, kind: str = "image/jpeg") -> str:
    """The content of a file of this type, to stand where its address would."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def policy_hashes(texts: Sequence[str]) -> str:
    """Styles or scripts as a policy names them."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in texts)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


def _elements(name: str, texts: Sequence[str]) -> str:
    return "\n".join(f"<{name}>{text}</{name}>" for text in texts)
