"""Pages for the pictures of what no command draws by itself (`scripts/screenshots.py`)."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

#: Of pictures that no command draws by itself.
STYLE = """<!doctype html><style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 22px; color: #1a1a1a; background: #fdfcf8 }
pre, code { font: 13.5px/1.5 ui-monospace, monospace } pre { white-space: pre-wrap; margin: 0 }
h2 { font-size: 17px; margin: 0 0 10px } td { padding: 4px 14px 4px 0; vertical-align: middle }
.columns, .figures { display: flex; flex-wrap: wrap; gap: 18px } .columns > div { flex: 1 }
figure { margin: 0; width: 270px } figure img { width: 124px; margin-right: 8px }
.pair img { width: 270px; height: 190px; object-fit: cover }
td:first-child img { height: 72px; width: 110px; object-fit: cover }
td:last-child img { width: 960px; height: 34px }
</style>"""


def picture_tag(of: Path | Image.Image) -> str:
    """An image as a tag that holds it."""
    data = io.BytesIO()
    with Image.open(of) if isinstance(of, Path) else of as image:
        image.convert("RGB").save(data, "PNG")
    return f"<img src='data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}'>"


def terminal_page(folder: Path, command: str) -> str:
    """What a terminal shows when a command is run in a folder."""
    from rich.console import Console
    from rich.text import Text

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    colours = {"FORCE_COLOR": "1", "COLUMNS": "108", "OMP_NUM_THREADS": "1", "PATH": path}
    done = subprocess.run(
        ["bash", "-c", f"({command}) 2>&1"],
        cwd=folder,
        env={**os.environ, **colours},
        capture_output=True,
        text=True,
    )
    console = Console(record=True, width=108, file=io.StringIO())
    # Where this machine keeps things is nobody's business.
    said = re.sub(
        r"(?<![\w.])/[\w./-]*?/(?=[\w.-]*[\s'\[,]|$)", "/.../", done.stdout, flags=re.MULTILINE
    )
    console.print(Text(f"$ {command}\n"), Text.from_ansi(re.sub(r"(Linux \d+)\S*?,", r"\1,", said)))
    return STYLE + console.export_html(inline_styles=True)
