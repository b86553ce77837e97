"""Text in CSV that no spreadsheet takes for a formula.

Spreadsheets compute a cell that begins with an equals sign and the like, even when it came from a
web page whose author had that in mind (owasp.org/www-community/attacks/CSV_Injection). Such text
gets an apostrophe before it, which spreadsheets read as "this is text". Numbers stay as they are.
"""

from __future__ import annotations

import re

# The wide forms are those of Japanese keyboards. Text that has apostrophes of its own before such a
# sign gets one more, so that taking one away always gives the text back.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def text_cell(text: str) -> str:
    """Give the text as it may stand in a cell."""
    return f"'{text}" if _FORMULA.match(text) else text
