"""The page of an article: it reads as it did, and shows which sentence each image belongs to.

One HTML file: no other file, no request, nothing of the article run as code. Every text is
escaped; the policy in the head names the page's own script and style by their hashes, so that
nothing else can run even if an escape were forgotten. Without the script the article, the numbers
of the links and their list are still there.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from sightline.article_body import ArticleBody, image_title
from sightline.html_writing import clean, page_head, page_part, page_scripts, policy_hashes
from sightline.pages import BlockKind
from sightline.progress import counted
from sightline.shown_article import ShownArticle, cut, weight_text

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
#: Cells of the matrix that a browser draws without a pause.
_MOST_CELLS = 30_000
_ROW_SHOWN = 140
_SENTENCE_SHOWN = 400
_CODE = BlockKind.CODE.value
_MEASURES = {
    "confidence": "A confidence is how often links that look this good are right.",
    "score": "A score is a cosine similarity: larger is better, but it is no probability.",
}


def render_article(article: ShownArticle, live: bool = False) -> str:
    """The whole page.

    A live one stands in a frame of the service's page, which tells it the links and hears of
    corrections (`data/article_live.js`); it is given an article without links.
    """
    scripts, styles = _scripts_and_styles(live)
    language = article.language or ""
    lang = f' lang="{language}"' if _LANGUAGE.fullmatch(language) else ""
    body = ArticleBody(article, live)
    title = clean(cut(article.title, 300) or "Article")
    heading = "" if body.titled else f'<h1 dir="auto">{title}</h1>\n'
    return (
        f"{page_head(title, styles, scripts)}"
        f'<body class="{article.measure}">\n'
        '<a class="skip" href="#article">Skip to the article</a>\n'
        f"{_bar(article, live)}\n"
        '<div class="layout">\n'
        f'<main id="article"{lang}>\n{heading}'
        f"<article>\n{body.html()}\n</article>\n</main>\n"
        f"{_PANEL}\n</div>\n"
        f'<div class="after">\n{_links(article, body, live)}\n{_matrix(article)}\n'
        f"{_footer(article)}\n</div>\n"
        f"{page_scripts(_script_data(article, body), scripts)}</body>\n</html>\n"
    )


def live_hashes() -> tuple[str, str]:
    """The sources of the live page's scripts and styles, for the policy of the page around it."""
    scripts, styles = _scripts_and_styles(live=True)
    return policy_hashes(scripts), policy_hashes(styles)


def _scripts_and_styles(live: bool) -> tuple[list[str], list[str]]:
    parts = ["article_page", "article_live"] if live else ["article_page"]
    return [page_part(f"{part}.js") for part in parts], [page_part(f"{part}.css") for part in parts]


_PANEL = (
    '<aside class="panel" id="panel" aria-label="Linked parts">'
    '<p class="hint">Point at an image or an underlined sentence to see what belongs together. '
    "Tab moves between them, Enter keeps one lit, the arrow keys go to its partner, Escape lets "
    'go.</p><div id="shown" hidden></div></aside>'
)


def _bar(article: ShownArticle, live: bool) -> str:
    """The strip at the top: what is linked, and how strong a link must be to be shown."""
    counts = f'<span id="count">{counted(len(article.links), "link")}</span>'
    if not article.links and not live:
        return f'<header class="bar"><strong>Sightline</strong> <span>{counts}</span></header>'
    weights = [article.weight(link) for link in article.links] or [0.0]
    step = 0.01 if article.measure == "confidence" else 0.001
    # Rounded down, so that the lowest place shows all links and the highest at least one.
    low, high = (math.floor(weight / step) * step for weight in (min(0, *weights), max(weights)))
    shown = weight_text(low, article.measure)
    return (
        '<header class="bar"><strong>Sightline</strong>'
        f'<form><label for="threshold">{article.measure.capitalize()} from</label>'
        f'<input id="threshold" type="range" min="{low:.3f}" max="{high:.3f}" step="{step}" '
        f'value="{low:.3f}" autocomplete="off" aria-describedby="count">'
        f'<output id="level" for="threshold">{shown}</output></form>'
        f'<span role="status">{counts}</span>'
        '<nav aria-label="Parts of this page"><a href="#links">Links</a>'
        f"{'' if article.similarity_SV is None else '<a href=#matrix>Matrix</a>'}</nav></header>"
    )


def _links(article: ShownArticle, body: ArticleBody, live: bool) -> str:
    """All links as a list that can be read, printed and heard."""
    if not article.links and not live:
        return (
            '<section aria-labelledby="links"><h2 id="links">Links</h2><p>No image of this '
            f"article was linked to a sentence.</p>{_unlinked(article, body)}</section>"
        )
    rows = []
    order = sorted(enumerate(article.links), key=lambda pair: (pair[1].image, pair[0]))
    for number, link in order:
        text = clean(cut(body.texts[link.sentence], _SENTENCE_SHOWN))
        rows.append(
            f'<tr data-link="{number}"><td><a href="#image-{link.image + 1}" aria-label="'
            f'{clean(image_title(article, link.image))}">{link.image + 1}</a></td>'
            f'<td dir="auto"><a href="#sentence-{link.sentence + 1}">{text}</a></td>'
            f"<td>{clean(weight_text(article.weight(link), article.measure))}</td></tr>"
        )
    return (
        '<section aria-labelledby="links"><h2 id="links">Links</h2>'
        f'<p id="measure">{_MEASURES[article.measure]}</p><table id="list"><thead><tr>'
        '<th scope="col">Image</th><th scope="col">Sentence</th>'
        f'<th scope="col">{article.measure.capitalize()}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
        f"{'' if live else _unlinked(article, body)}</section>"
    )


def _unlinked(article: ShownArticle, body: ArticleBody) -> str:
    """The images without a link, and why they have none."""
    items = [
        f'<li><a href="#image-{index + 1}">{clean(image_title(article, index))}</a>: '
        f"{clean(image.reason)}</li>"
        for index, image in enumerate(article.images)
        if image.reason and not body.by_image[index]
    ]
    return f"<p>Images without a link:</p><ul>{''.join(items)}</ul>" if items else ""


def _matrix(article: ShownArticle) -> str:
    if article.similarity_SV is None or not article.similarity_SV.size:
        return ""
    left = len(article.spans) - len(_matrix_rows(article))
    note = f" The {left:,} least similar of the sentences are not shown." if left else ""
    return (
        '<section class="matrix-section"><h2 id="matrix">Matrix</h2><details>'
        "<summary>Similarity of every sentence and every image</summary>"
        '<p id="readout" class="soft" aria-hidden="true">Point at a cell to read it.</p>'
        f'<p class="soft">Framed cells are links.{note}</p>'
        '<div class="scroll" id="cells" tabindex="0" role="region" aria-label="Similarity matrix">'
        "</div></details><noscript><p>The matrix needs JavaScript.</p></noscript></section>"
    )


def _matrix_rows(article: ShownArticle) -> list[int]:
    """The sentences of the matrix: all, or as many of the best as can be drawn."""
    similarity_SV = article.similarity_SV
    if similarity_SV is None or not similarity_SV.size:
        return []
    most = max(1, _MOST_CELLS // similarity_SV.shape[1])
    if len(similarity_SV) <= most:
        return list(range(len(similarity_SV)))
    best_S = np.nan_to_num(similarity_SV, nan=-np.inf).max(1)
    linked = {link.sentence for link in article.links}
    order = sorted(range(len(best_S)), key=lambda s: (s not in linked, -best_S[s]))
    return sorted(order[:most])


def _footer(article: ShownArticle) -> str:
    counts = [
        counted(len(article.spans), "sentence"),
        counted(len(article.images), "image"),
        counted(len(article.links), "link"),
    ]
    lines = []
    unread = [image for image in article.images if image.status != "ok"]
    if unread:
        lines.append(
            f"{counted(len(unread), 'image')} could not be read; each says why in its place"
        )
    for reason, number in article.left_out.get("text", {}).items():
        # The page shows code all the same.
        where = "code, shown but never linked" if reason == _CODE else clean(reason)
        lines.append(f"{counted(number, 'character')} of text: {where}")
    for reason, number in article.left_out.get("images", {}).items():
        lines.append(f"{counted(number, 'image')}: {clean(reason)}")
    items = "".join(f"<li>{line}</li>" for line in lines)
    left = f"<ul>{items}</ul>" if items else "<p>Nothing was left out.</p>"
    facts = " · ".join([*counts, *(clean(fact) for fact in article.facts)])
    return (
        '<footer><section aria-labelledby="left-out"><h2 id="left-out">What was left out</h2>'
        f'{left}</section><p class="soft">{facts}</p></footer>'
    )


def _script_data(article: ShownArticle, body: ArticleBody) -> Any:
    """What the script needs."""
    strengths = body.strengths
    data: dict[str, Any] = {
        "measure": article.measure,
        "links": [
            [link.sentence, link.image, article.weight(link), round(strength, 3)]
            for link, strength in zip(article.links, strengths, strict=True)
        ],
        "titles": [image_title(article, index) for index in range(len(article.images))],
    }
    if body.live:
        data["measures"] = _MEASURES
    rows = _matrix_rows(article)
    if rows and article.similarity_SV is not None:
        values = np.round(article.similarity_SV[rows].astype(np.float64), 3)
        data["matrix"] = [
            [row, cut(body.texts[row], _ROW_SHOWN), values[place].tolist()]
            for place, row in enumerate(rows)
        ]
    return _writable(data)


def _writable(value: Any) -> Any:
    """Replace half surrogate pairs, which JSON cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _writable(one) for key, one in value.items()}
    return [_writable(one) for one in value] if isinstance(value, list) else value
