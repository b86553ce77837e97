"""What a file that holds its own images gives: the page, and the images by the page's sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sightline.pages import LeftOut, Page
from sightline.problems import SightlineError
from sightline.zip_limits import Archive

#: Of all images of a file together; further ones are left out and counted.
MAX_IMAGE_BYTES = 256 * 2**20
#: Of a file. Taking them over costs the caller 8 microseconds each (measured), which is not to go
#: far beyond the time that reading may take.
MAX_BLOCKS = 100_000


@dataclass(frozen=True, slots=True)
class Contents:
    """A page read out of a PDF, DOCX or EPUB file.

    A source of the page without a file is remote if it is a URL, else missing from the file.
    """

    page: Page
    #: Image files as bytes, by the `source` of the page's images.
    files: dict[str, bytes] = field(default_factory=dict)
    #: CPU time that reading took.
    seconds: float = field(default=0.0, compare=False)


def read_image_files(
    archive: Archive, sources: Iterable[str], left_out: LeftOut
) -> dict[str, bytes]:
    """Read images out of an archive, each once.

    One that is damaged or beyond the limit loses its file, which is counted, but not its place.
    """
    files: dict[str, bytes] = {}
    remaining = MAX_IMAGE_BYTES
    for source in dict.fromkeys(sources):
        if source not in archive:
            continue
        if archive.size(source) > remaining:
            left_out.images["files beyond the limit on bytes"] += 1
            continue
        try:
            data = archive.read(source)
        except SightlineError:
            left_out.images["files that cannot be unpacked"] += 1
            continue
        if len(data) > remaining:  # an archive may understate a size
            left_out.images["files beyond the limit on bytes"] += 1
            continue
        files[source] = data
        remaining -= len(data)
    return files
