"""Articles and documents made of hostile texts, each text in every place that a page may show."""

import html
import re

_PLAIN = re.compile(r"[^A-Za-z0-9<>=(){}\[\]/:.;,#%&!?*+-]")


def chunks(payloads: list[str], size: int = 250) -> list[list[str]]:
    """As many as one article may hold in the service, or as many as one likes."""
    return [payloads[start : start + size] for start in range(0, len(payloads), size)]


def html_article(payloads: list[str]) -> str:
    """Each as text, target and title of a link, name, text, title and caption of an image."""
    parts = []
    for number, payload in enumerate(payloads):
        text = html.escape(payload)
        source = "real.jpg" if number % 125 == 0 else text
        parts.append(
            f'<p>A dog runs. {text} <a href="{text}" title="{text}">The sofa.</a></p>'
            f'<figure><img src="{source}" alt="{text}" title="{text}">'
            f"<figcaption>{text}</figcaption></figure>"
        )
    title = html.escape(payloads[0])
    return (
        f"<!doctype html><html lang='{title}'><title>{title}</title><main>{''.join(parts)}</main>"
    )


def markdown_article(payloads: list[str]) -> str:
    """The same in Markdown, where a payload is text, markup, code and address at once."""
    parts = []
    for number, payload in enumerate(payloads):
        line = " ".join(payload.split())
        source = "real.jpg" if number % 125 == 0 else f"<{line}>"
        parts.append(f"A cat sleeps. {line}\n\n![{line}]({source} '{line}')\n\n[go](<{line}>)\n")
    return "\n".join(parts)


def native_document(payloads: list[str], name: str) -> dict:
    """The same as a document: sentences, names of images, and keys that nobody knows."""
    return {
        "id": f"{name} {payloads[0]}"[:900],
        "title": payloads[-1][:900],
        "sentences": [f"A dog. {payload}" for payload in payloads],
        "images": ["real.jpg", *payloads[1:]],
        "alts": payloads,
        "links": [[0, 0], [1, 1]],
        "split": "test",
        "__proto__": {"innerHTML": payloads[0]},
    }


def shown(text: str, payloads: list[str]) -> int:
    """How many payloads are there as text, spaces and odd characters apart."""
    plain = _PLAIN.sub("", text)
    return sum(_PLAIN.sub("", payload) in plain for payload in payloads)
