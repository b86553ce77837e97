"""Draw one small similarity matrix as each policy links it: the pictures of docs/policies.md.

    python scripts/draw_policies.py docs/policies

The links are those that `sightline.linking.link` gives, so that the pictures cannot lie.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from sightline.choices import Policy
from sightline.linking import link

#: Three sentences, four images; the last sentence resembles none of them.
MATRIX = np.array([[0.62, 0.48, 0.55, 0.11], [0.12, 0.44, 0.15, 0.20], [-0.05, 0.08, -0.12, -0.09]])
POLICIES: dict[Policy, dict[str, float | int | str]] = {
    "assignment": {},
    "dense": {},
    "top-k": {"max_links": 2},
    "threshold": {"threshold": 0.4},
    "mmc4": {},
}
CELL, LEFT, TOP = 54, 92, 34


def drawing(policy: Policy) -> str:
    """The matrix as SVG, its links framed."""
    links = {(one.sentence, one.image) for one in link(MATRIX, policy, **POLICIES[policy])}  # type: ignore[arg-type]
    rows, columns = MATRIX.shape
    width, height = LEFT + columns * CELL + 12, TOP + rows * CELL + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>Links of the policy {policy}</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="#fcfbf8"/>',
    ]
    for v in range(columns):
        x = LEFT + v * CELL + CELL / 2
        parts.append(
            f'<text x="{x}" y="22" text-anchor="middle" fill="#6b655c">image {v + 1}</text>'
        )
    for s in range(rows):
        y = TOP + s * CELL + CELL / 2 + 5
        parts.append(f'<text x="12" y="{y}" fill="#6b655c">sentence {s + 1}</text>')
        for v in range(columns):
            parts += cell(s, v, (s, v) in links)
    return "\n".join([*parts, "</svg>", ""])


def cell(s: int, v: int, linked: bool) -> list[str]:
    """One cell: the warmer, the more similar; a frame for a link."""
    x, y, value = LEFT + v * CELL, TOP + s * CELL, MATRIX[s, v]
    frame = ' stroke="#24211d" stroke-width="2.5"' if linked else ""
    weight = ' font-weight="700"' if linked else ""
    return [
        f'<rect x="{x + 2}" y="{y + 2}" width="{CELL - 4}" height="{CELL - 4}" rx="4" '
        f'fill="#e0a420" fill-opacity="{max(0.0, value) * 1.3:.2f}"{frame}/>',
        f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 5}" text-anchor="middle" '
        f'fill="#24211d"{weight}>{value:.2f}</text>',
    ]


def main(folder: Path) -> None:
    """Write one file a policy."""
    folder.mkdir(parents=True, exist_ok=True)
    for policy in POLICIES:
        (folder / f"{policy}.svg").write_text(drawing(policy), "utf-8")
        print(folder / f"{policy}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
