"""Word documents of any tree of elements with words in it, to see whether one is lost uncounted."""

import re
import zipfile

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_NAMES = (
    f'xmlns:w="{_W}" xmlns:r="urn:x-relationships" '
    + " ".join(f'xmlns:{name}="urn:{name}"' for name in ("m", "mc", "v", "a", "wp", "wps", "c"))
)  # fmt: skip
# fmt: off
_TAGS = """
w:p w:p w:r w:r w:tbl w:tr w:tc w:sdt w:sdtPr w:sdtContent w:ins w:del w:moveFrom w:moveTo
w:hyperlink w:smartTag w:customXml w:fldSimple w:ruby w:rt w:rubyBase w:drawing w:pict w:object
w:txbxContent w:pPr w:rPr w:tblPr w:tblGrid w:trPr w:sectPr w:instrText w:delText w:t w:x m:oMath
m:t a:t a:p v:shape v:textpath wps:txbx wp:posOffset mc:AlternateContent mc:AlternateContent
mc:Choice mc:Fallback w:subDoc w:listItem
"""
_ALONE = [
    "<w:br/>", "<w:tab/>", "<w:noBreakHyphen/>", "<w:rPr><w:vanish/></w:rPr>",
    '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>', '<a:blip r:embed="i"/>', '<v:imagedata r:id="i"/>',
    '<v:fill r:id="i"/>', '<c:chart r:id="c"/>', "<wp:posOffset>12</wp:posOffset>",
]
# fmt: on
_OPEN = _TAGS.split()
_PICTURE = re.compile('r:(?:embed|id)="')
_WORD = re.compile(r"w\d{3}")


def tree_with_words(data: bytes) -> str:
    """Make elements of bytes: each a word, in a run's text or bare, or the start or end of one."""
    words = (f"w{number}" for number in range(100, 1000))
    pieces, opened = [], []
    for byte in data[:800]:
        what, which = byte % 4, byte // 4
        if what == 0:
            pieces.append(f"<w:t>{next(words)}</w:t>" if which % 2 else next(words))
        elif what == 1 and opened:
            pieces.append(f"</{opened.pop()}>")
        elif which < len(_OPEN):
            opened.append(_OPEN[which])
            pieces.append(f"<{opened[-1]}>")
        else:
            pieces.append(_ALONE[which % len(_ALONE)])
        if len(opened) > 100:
            break
    return "".join([*pieces, *(f"</{tag}>" for tag in reversed(opened))])


def write_document(path, body="", notes=""):
    """Write a document with this text, and with these notes, which nothing refers to."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("word/document.xml", f"<w:body {_NAMES}>{body}</w:body>")
        file.writestr("word/any.xml", f"<w:footnotes {_NAMES}>{notes}</w:footnotes>")
        related = f'<Relationship Id="i" Type="{_W}/image" Target="i.png"/>'
        file.writestr("word/_rels/document.xml.rels", f"<x>{related}</x>")
    return path


def lost_in(tree, page):
    """Give how many characters and pictures of a tree are neither read nor counted.

    Below zero are characters that count twice. Of pictures there may be fewer in a tree that gives
    several forms of one thing.
    """
    read = len("".join(_WORD.findall(page.text)))
    counted = sum(n for why, n in page.left_out.text.items() if not why.endswith(")"))
    characters = len("".join(_WORD.findall(tree))) - read - counted
    pictures = len(page.images) + page.left_out.images.total()
    several = "AlternateContent" in tree
    return characters, 0 if several else len(_PICTURE.findall(tree)) - pictures
