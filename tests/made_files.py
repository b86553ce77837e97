"""Small PDF, DOCX and EPUB files for tests, made from nothing."""

import io
import zipfile

import numpy as np
from PIL import Image


def picture(number=1, size=(90, 60)):
    """Give a PNG of noise, so that no two numbers give the same."""
    noise = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "PNG")
    return stream.getvalue()


class PdfFile:
    """A PDF under construction: pages of text and images at given places, in points."""

    def __init__(self):
        self.objects = [b"", b""]  # the catalog and the list of pages, known at the end
        self.pages = []
        self.fonts = [
            self.add(b"<< /Type /Font /Subtype /Type1 /BaseFont /%s >>" % name)
            for name in (b"Helvetica", b"Helvetica-Bold")
        ]

    def add(self, data):
        self.objects.append(data)
        return len(self.objects)

    def stream(self, dictionary, data):
        head = b"<< %s /Length %d >>\nstream\n" % (dictionary, len(data))
        return self.add(head + data + b"\nendstream")

    def image(self, number=1, size=(90, 60)):
        noise = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), np.uint8)
        kind = b"/Type /XObject /Subtype /Image /ColorSpace /DeviceRGB /BitsPerComponent 8"
        return self.stream(b"%s /Width %d /Height %d" % (kind, *size), noise.tobytes())

    def page(self, texts=(), images=(), size=(600, 800), extra=b"", drawn=b""):
        """Add a page: texts are (x, y, size, words[, bold]), images (object, x, y, w, h)."""
        parts = [drawn]
        for x, y, points, words, *bold in texts:
            escaped = words.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            font = b"F1" if bold and bold[0] else b"F0"
            parts.append(b"BT /%s %g Tf %g %g Td (%s) Tj ET" % (
                font, points, x, y, escaped.encode("latin-1")))  # fmt: skip
        for number, x, y, width, height in images:
            parts.append(b"q %g 0 0 %g %g %g cm /I%d Do Q" % (width, height, x, y, number))
        content = self.stream(b"", b"\n".join(parts))
        fonts = b" ".join(b"/F%d %d 0 R" % pair for pair in enumerate(self.fonts))
        shown = b" ".join(b"/I%d %d 0 R" % (image[0], image[0]) for image in images)
        self.pages.append(
            self.add(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %g %g] /Contents %d 0 R %s "
                b"/Resources << /Font << %s >> /XObject << %s >> >> >>"
                % (*size, content, extra, fonts, shown)
            )
        )
        return self

    def write(self, path):
        kids = b" ".join(b"%d 0 R" % page for page in self.pages)
        self.objects[0] = b"<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) >>"
        self.objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(self.pages))
        data = bytearray(b"%PDF-1.7\n")
        places = []
        for number, content in enumerate(self.objects, 1):
            places.append(len(data))
            data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
        start = len(data)
        data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        for place in places:
            data += b"%010d 00000 n \n" % place
        data += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(places) + 1)
        data += b"startxref\n%d\n%%%%EOF\n" % start
        path.write_bytes(data)
        return path


CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)


def epub(path, chapters, files=None, extra=None):
    """Write a book: chapters are bodies of XHTML by name, files and extra are other members."""
    items = "".join(
        f'<item id="c{i}" href="{name}" media-type="application/xhtml+xml"/>'
        for i, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Book</dc:title>'
        f"<dc:language>en</dc:language></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        file.writestr("META-INF/container.xml", CONTAINER)
        file.writestr("OEBPS/content.opf", package)
        for name, body in chapters.items():
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
            file.writestr(f"OEBPS/{name}", page)
        for name, data in {**(files or {}), **(extra or {})}.items():
            file.writestr(name, data)
    return path
