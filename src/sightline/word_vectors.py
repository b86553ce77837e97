"""Word vectors made elsewhere: word2vec, GloVe.

Files are read as a stream and only the wanted words are kept: GoogleNews has 3 million vectors
in 3.6 GB, a corpus some ten thousand words.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.problems import Problems, SightlineError

# Longer lines are skipped, longer words end the reading: both bound the memory that a file
# which is something else can take. A line of 300 numbers is 3 to 7 kB.
_LONGEST_LINE = 1 << 20
_LONGEST_WORD = 1 << 16
_LARGEST_DIMENSION = 50_000
# So much of a .bin is read at a time; 16 kB and 16 MB both take a third longer (measured).
_CHUNK = 1 << 20
# So many lines of a text without a header are looked at to learn the dimension.
_SAMPLE_LINES = 100

_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
# Unpacked to packed bytes of a .npz, beyond the first: deflate reaches 1,032, as only zeros do.
_DENSEST = 250
_FREE = 1 << 20
_BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors, a row each, in the order of the file."""

    words: list[str]
    vectors: NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])


def read_word_vectors(path: Path, words: Collection[str] | None, problems: Problems) -> WordVectors:
    """Read the vectors of `words` (None: of all) from a word2vec, GloVe or .npz file.

    The content, not the name, tells the format: word2vec binary or text (a header of count and
    dimension), GloVe text (no header), each also compressed with gzip, or a .npz of `words` and
    `vectors`. Broken lines are reported and skipped; of a word that comes twice the first counts.
    """
    wanted = None if words is None else {word.encode(errors="surrogatepass") for word in words}
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic == b"PK\x03\x04":
                return _read_npz(path, file, wanted, problems)
            if magic[:2] == b"\x1f\x8b":
                with gzip.open(file) as stream:
                    return _read_stream(path, stream, wanted, problems)
            return _read_stream(path, file, wanted, problems)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SightlineError(f"{path} cannot be read: {reason}.") from error


@dataclass
class _Kept:
    """The wanted vectors as they come."""

    path: Path
    dimension: int
    wanted: set[bytes] | None
    problems: Problems
    words: dict[bytes, None] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)

    def wants(self, word: bytes) -> bool:
        """Whether the word's vector is needed and not there yet."""
        return (self.wanted is None or word in self.wanted) and word not in self.words

    def add(self, word: bytes, vector: NDArray[np.float32] | None, place: int | str) -> None:
        """Keep a vector if it and its word are sound, else say what is wrong."""
        if vector is None:
            self.problem(place, f"{_show(word)}: a field of the vector is not a number")
        elif not np.isfinite(vector).all():
            self.problem(place, f"{_show(word)}: the vector holds NaN or infinity")
        elif not word or not _is_utf8(word):
            self.problem(place, f"{_show(word)}: the word is empty or not UTF-8")
        else:
            self.words[word] = None
            self.data += vector.tobytes()

    def problem(self, place: int | str | None, reason: str) -> None:
        """Report something broken at a place of the file."""
        self.problems.add(self.path, place, None, reason)

    def finish(self) -> WordVectors:
        """Return what was kept."""
        vectors = np.frombuffer(self.data, np.float32).reshape(-1, self.dimension)
        return WordVectors([word.decode() for word in self.words], vectors)


def _show(word: bytes) -> str:
    return repr(word[:50].decode(errors="replace"))


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def _not_word_vectors(path: Path, reason: str) -> SightlineError:
    return SightlineError(
        f"{path} holds no word vectors: {reason}. Expected word2vec (.bin or text), GloVe text, "
        "either also as .gz, or .npz with `words` and `vectors`."
    )


@dataclass(frozen=True)
class _Header:
    """The first line of a word2vec file."""

    count: int
    dimension: int


def _read_stream(
    path: Path, stream: BufferedIOBase, wanted: set[bytes] | None, problems: Problems
) -> WordVectors:
    """Read word2vec or GloVe, telling them apart by the first lines."""
    try:
        header = _header(path, stream.readline(_LONGEST_LINE))
        start = stream.tell() if header else 0
        binary = header is not None and _is_binary(path, stream, header.dimension)
        stream.seek(start)
        dimension = header.dimension if header else _sampled_dimension(path, stream)
        stream.seek(start)
    except _BROKEN_GZIP as error:
        raise _not_word_vectors(path, f"it cannot be decompressed ({error})") from error
    kept = _Kept(path, dimension, wanted, problems)
    if header is None:
        _read_text(kept, stream, first_line=1)
        return kept.finish()
    read = _read_binary(kept, stream, header.count) if binary else _read_text(kept, stream, 2)
    if read == 0 < header.count:
        raise _not_word_vectors(path, f"it promises {header.count:,} vectors and none follows")
    if read < header.count:
        kept.problem(None, f"damaged or cut off: read {read:,} of {header.count:,} vectors")
    return kept.finish()


def _header(path: Path, line: bytes) -> _Header | None:
    """Parse a first line of two whole numbers; None if it is something else."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    header = _Header(int(fields[0]), int(fields[1]))
    if not 1 <= header.dimension <= _LARGEST_DIMENSION:
        raise _not_word_vectors(path, f"its header promises {header.dimension:,} dimensions")
    return header


def _is_binary(path: Path, stream: BufferedIOBase, dimension: int) -> bool:
    """Tell word2vec's binary form from its text form by what follows the header."""
    line = stream.readline(_LONGEST_LINE)
    if _numbers(line.split()[1:], dimension) is not None:
        return False
    sample = line + stream.read(4096)
    # Numbers in binary are full of control characters; text has none.
    return len(sample.translate(None, _CONTROL)) < len(sample) or ".bin" in path.suffixes


def _sampled_dimension(path: Path, stream: BufferedIOBase) -> int:
    """Learn the dimension from the first lines of a text without header.

    A line may be broken, and a word may hold spaces (glove.840B has ". . ."), so the most
    common number of fields counts.
    """
    lines = [line.split() for line in islice(_lines(stream), _SAMPLE_LINES) if line]
    lengths = Counter(map(len, lines))
    dimension = lengths.most_common(1)[0][0] - 1 if lengths else 0
    if not 1 <= dimension <= _LARGEST_DIMENSION or not any(
        _numbers(fields[1:], dimension) is not None for fields in lines
    ):
        raise _not_word_vectors(path, "its lines are not words followed by numbers")
    return dimension


def _numbers(fields: list[bytes], dimension: int) -> NDArray[np.float32] | None:
    """Parse so many numbers; None if the fields are something else."""
    if len(fields) != dimension:
        return None
    try:
        with np.errstate(over="ignore"):  # too large becomes infinity, which is reported
            return np.array(fields, dtype=np.float32)
    except ValueError:
        return None


def _read_text(kept: _Kept, stream: BufferedIOBase, first_line: int) -> int:
    """Read lines of a word and numbers; return how many there were, broken ones included."""
    count = 0
    try:
        for place, line in enumerate(_lines(stream), first_line):
            if line is None:
                kept.problem(place, f"the line is longer than {_LONGEST_LINE:,} bytes")
            elif line:
                _read_line(kept, line, place)
            count += line != b""
    except _BROKEN_GZIP as error:
        kept.problem(None, f"the compressed data breaks off after {count:,} vectors ({error})")
    return count


def _read_line(kept: _Kept, line: bytes, place: int) -> None:
    """Read one line. The fields are counted, but only a wanted word's numbers are parsed."""
    dimension, numbers = kept.dimension, line.count(b" ")
    # Most lines need no splitting, which takes five times as long as counting.
    many = numbers > dimension
    word = line.rsplit(b" ", dimension)[0].rstrip() if many else line[: line.find(b" ")]
    # glove.840B has words with spaces; that the numbers are too many shows in the last part.
    if numbers < dimension or (many and _numbers(word.split()[-1:], 1) is not None):
        kept.problem(place, f"expected a word and {dimension} numbers, found {numbers} numbers")
    elif kept.wants(word):
        kept.add(word, _numbers(line.rsplit(b" ", dimension)[1:], dimension), place)


def _lines(stream: BufferedIOBase) -> Iterator[bytes | None]:
    """Yield the stripped lines; None in the place of one that is too long."""
    while line := stream.readline(_LONGEST_LINE):
        whole = len(line) < _LONGEST_LINE or line.endswith(b"\n")
        yield line.rstrip(b" \r\n") if whole else None
        while not whole and line and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST_LINE)


def _read_binary(kept: _Kept, stream: BufferedIOBase, count: int) -> int:
    """Read words, each followed by a space and its numbers; return how many there were.

    A vector that is not wanted is jumped over, so the time is that of finding the spaces.
    """
    size = 4 * kept.dimension
    buffer, position = b"", 0
    for read in range(count):
        space = buffer.find(b" ", position)
        while space < 0 or space + 1 + size > len(buffer):
            chunk = _chunk(kept, stream, read)
            if not chunk or (space < 0 and len(buffer) - position > _LONGEST_WORD):
                return read
            buffer, position = buffer[position:] + chunk, 0
            space = buffer.find(b" ")
        # The C program ends each vector with a line break, gensim does not.
        word = buffer[position:space].lstrip(b"\n")
        if kept.wants(word):
            vector = np.frombuffer(buffer, "<f4", kept.dimension, space + 1).astype(np.float32)
            kept.add(word, vector, f"vector {read + 1}")
        position = space + 1 + size
    return count


def _chunk(kept: _Kept, stream: BufferedIOBase, read: int) -> bytes:
    """Read on; damaged compression is the end of the file."""
    try:
        # Not `read`, which would lose all that comes before the damage.
        return stream.read1(_CHUNK)
    except _BROKEN_GZIP as error:
        kept.problem(None, f"the compressed data breaks off after {read:,} vectors ({error})")
        return b""


def _read_npz(
    path: Path, file: BufferedIOBase, wanted: set[bytes] | None, problems: Problems
) -> WordVectors:
    """Read the arrays `words` and `vectors` of a .npz file, pickles excluded."""
    try:
        with zipfile.ZipFile(file) as archive:
            for one in archive.infolist():
                if one.file_size > _FREE + _DENSEST * one.compress_size:
                    raise ValueError(f"{one.filename[:40]} unpacks to {one.file_size:,} bytes")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except KeyError as error:
        raise _not_word_vectors(path, f"an array is missing ({error.args[0]})") from error
    except Exception as error:  # numpy and zipfile let through whatever Python's parsers raise
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise _not_word_vectors(path, f"it cannot be read ({reason})") from error
    if not isinstance(words, np.ndarray) or not isinstance(vectors, np.ndarray):
        raise _not_word_vectors(path, "`words` or `vectors` is not an array")
    if words.ndim != 1 or words.dtype.kind not in "US":
        raise _not_word_vectors(path, "`words` is not a list of strings")
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(words):
        raise _not_word_vectors(
            path,
            f"`vectors` is {vectors.dtype} of shape {vectors.shape}, expected a row of floats "
            f"for each of {len(words):,} words",
        )
    kept = _Kept(path, vectors.shape[1], wanted, problems)
    for row, word in enumerate(words.tolist()):
        key = word if isinstance(word, bytes) else word.encode(errors="surrogatepass")
        if kept.wants(key):
            kept.add(key, vectors[row].astype(np.float32), f"words[{row}]")
    return kept.finish()
