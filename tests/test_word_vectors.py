import gzip
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import word_vectors as module
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.vocabulary import Vocabulary
from sightline.word_embedding import Coverage, embedding_matrix
from sightline.word_vectors import WordVectors, read_word_vectors

WORDS = ["the", "t-shirt", "don't", "鱼", "a"]
VECTORS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


def text(words=WORDS, vectors=VECTORS, end="\n"):
    rows = (" ".join(map(str, row.tolist())) for row in vectors)
    return "".join(f"{w} {row}{end}" for w, row in zip(words, rows, strict=True)).encode()


def binary(words=WORDS, vectors=VECTORS, end=b"\n", count=None):
    header = f"{len(words) if count is None else count} {vectors.shape[1]}\n".encode()
    rows = zip(words, vectors, strict=True)
    return header + b"".join(word.encode() + b" " + row.tobytes() + end for word, row in rows)


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path.read_bytes()


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="vectors"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write_file


FORMATS = {
    "glove": text(),
    "glove of Windows": text(end="\r\n"),
    "word2vec text": b"5 4\n" + text(),
    "word2vec text with trailing spaces": b"5 4\n" + text(end=" \n"),
    "word2vec binary": binary(),
    "gensim binary": binary(end=b""),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_every_format_gives_all_words_or_the_wanted_ones(write, content, compressed):
    path = write(gzip.compress(content) if compressed else content)
    problems = Problems()
    everything = read_word_vectors(path, None, problems)
    assert everything.words == WORDS
    np.testing.assert_array_equal(everything.vectors, VECTORS)
    assert everything.vectors.dtype == np.float32
    some = read_word_vectors(path, {"鱼", "the", "absent"}, problems)
    assert some.words == ["the", "鱼"]
    np.testing.assert_array_equal(some.vectors, VECTORS[[0, 3]])
    assert problems.count == 0


@pytest.mark.parametrize("kind", [np.str_, np.bytes_])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_npz(tmp_path, write, kind, dtype):
    words = np.array(["the", "the", "a", "nan"], dtype=kind)
    vectors = np.array([[1, 2], [9, 9], [3, 4], [np.nan, 0]], dtype=dtype)
    path = write(npz(tmp_path / "v.npz", words=words, vectors=vectors))
    problems = Problems()
    result = read_word_vectors(path, None, problems)
    assert result.words == ["the", "a"]
    np.testing.assert_array_equal(result.vectors, np.array([[1, 2], [3, 4]], dtype=np.float32))
    assert [str(problem) for problem in problems.first] == [
        f"{path}:words[3]: 'nan': the vector holds NaN or infinity"
    ]


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_binary_file_is_the_same_however_it_is_cut_into_chunks(write, monkeypatch, chunk):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    result = read_word_vectors(write(binary()), None, Problems())
    assert result.words == WORDS
    np.testing.assert_array_equal(result.vectors, VECTORS)


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"3 2\n", b"a 1 2\nb 3 4\n", binary()]))
def test_any_bytes_are_vectors_problems_or_one_error(tmp_path_factory, garbage, before):
    path = tmp_path_factory.mktemp("garbage") / "vectors.bin"
    path.write_bytes(before + garbage)
    try:
        result = read_word_vectors(path, None, Problems())
    except SightlineError as error:
        assert str(path) in str(error)
    else:
        assert len(result.words) == len(result.vectors) == len(set(result.words))
        assert np.isfinite(result.vectors).all()


def test_of_a_word_that_comes_twice_the_first_counts(write):
    content = text(["a", "b", "a"], VECTORS[:3])
    for path in (write(content, "text"), write(binary(["a", "b", "a"], VECTORS[:3]), "binary")):
        result = read_word_vectors(path, None, Problems())
        assert result.words == ["a", "b"]
        np.testing.assert_array_equal(result.vectors, VECTORS[:2])


def test_words_with_spaces_as_in_glove_840b(write):
    path = write(b"the 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\nof 1 1 1\n")
    problems = Problems()
    result = read_word_vectors(path, None, problems)
    assert result.words == ["the", ". . .", "at name@domain.com", "of"]
    assert result.vectors[1].tolist() == [4, 5, 6]
    assert problems.count == 0


def test_broken_lines_are_reported_with_their_numbers_and_skipped(write):
    lines = ["the 1 2 3", "few 1 2", "many 1 2 3 4", "text 1 x 3", "nan 1 nan 3", "inf 1 2 1e39"]
    path = write("\n".join([*lines, "", "lonely", "a 4 5 6"]).encode() + b"\nbad\xff 1 2 3\n")
    problems = Problems()
    result = read_word_vectors(path, None, problems)
    assert result.words == ["the", "a"]
    assert problems.count == 7
    assert [str(problem).removeprefix(f"{path}:") for problem in problems.first] == [
        "2: expected a word and 3 numbers, found 2 numbers",
        "3: expected a word and 3 numbers, found 4 numbers",
        "4: 'text': a field of the vector is not a number",
        "5: 'nan': the vector holds NaN or infinity",
        "6: 'inf': the vector holds NaN or infinity",
        "8: expected a word and 3 numbers, found 0 numbers",
        "10: 'bad\ufffd': the word is empty or not UTF-8",
    ]


def test_a_broken_first_line_does_not_set_the_dimension(write):
    problems = Problems()
    result = read_word_vectors(write(b"broken 1\na 1 2 3\nb 4 5 6\n"), None, problems)
    assert result.words == ["a", "b"]
    assert [problem.line for problem in problems.first] == [1]


def test_strict_stops_at_the_first_problem(write):
    with pytest.raises(ProblemError, match=r":2: expected a word and 2 numbers, found 1 numbers"):
        read_word_vectors(write(b"a 1 2\nb 1\nc 3 4\n"), None, Problems(strict=True))


def test_a_line_without_end_is_skipped(write, monkeypatch):
    monkeypatch.setattr(module, "_LONGEST_LINE", 50)
    problems = Problems()
    path = write(b"a 1 2\nlong " + b"1 " * 200 + b"\nb 3 4\n")
    assert read_word_vectors(path, None, problems).words == ["a", "b"]
    assert [problem.line for problem in problems.first] == [2]
    assert problems.first[0].reason == "the line is longer than 50 bytes"


@pytest.mark.parametrize("missing", [1, 10, 21])
def test_a_truncated_binary_file_says_how_much_was_read(write, missing):
    path = write(binary()[: -1 - missing])
    problems = Problems()
    read = 4 if missing < 18 else 3  # "a", a space and 16 bytes
    assert read_word_vectors(path, None, problems).words == WORDS[:read]
    reason = f"damaged or cut off: read {read} of 5 vectors"
    assert [str(problem) for problem in problems.first] == [f"{path}: {reason}"]


def test_a_truncated_text_with_header_says_how_much_was_read(write):
    problems = Problems()
    read_word_vectors(write(b"9 4\n" + text()), None, problems)
    assert problems.first[0].reason == "damaged or cut off: read 5 of 9 vectors"


def test_nan_in_a_binary_file_is_reported_by_the_number_of_the_vector(write):
    vectors = VECTORS.copy()
    vectors[2, 1] = np.nan
    problems = Problems()
    result = read_word_vectors(write(binary(vectors=vectors)), None, problems)
    assert result.words == ["the", "t-shirt", "鱼", "a"]
    assert problems.first[0].line == "vector 3"


@pytest.mark.parametrize("make", [binary, lambda words, vectors: text(words, vectors)])
def test_truncated_compression_keeps_what_came_before(write, make):
    vectors = np.random.default_rng(1).normal(size=(4000, 50)).astype(np.float32)
    words = [f"w{number}" for number in range(len(vectors))]
    compressed = gzip.compress(make(words, vectors), compresslevel=1)
    problems = Problems()
    path = write(compressed[: len(compressed) // 2])
    result = read_word_vectors(path, None, problems)
    assert 1500 < len(result.words) < 2500
    np.testing.assert_array_equal(result.vectors, vectors[: len(result.words)])
    assert problems.first[0].reason.startswith(
        f"the compressed data breaks off after {len(result.words):,} vectors"
    )


NOT_WORD_VECTORS = {
    "nothing": (b"", "its lines are not words followed by numbers"),
    "prose": (b"The cat sat here.\nThe dog sat there.\n", "not words followed by numbers"),
    "json": (b'{"words": ["a"]}', "not words followed by numbers"),
    "html": (b"<html>\n<body>404 Not Found</body>\n</html>", "not words followed by numbers"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(range(256)) * 20, "not words followed by numbers"),
    "header alone": (b"5 4\n", "it promises 5 vectors and none follows"),
    "no dimension": (b"5 0\n", "its header promises 0 dimensions"),
    "vast dimension": (b"5 9999999999\n", "its header promises 9,999,999,999 dimensions"),
    "binary without words": (b"5 4\n" + b"\x01" * 200_000, "5 vectors and none follows"),
    "broken gzip": (gzip.compress(text())[:15], "it cannot be decompressed"),
    "broken zip": (b"PK\x03\x04" + b"x" * 100, "it cannot be read"),
}


@pytest.mark.parametrize(("content", "message"), NOT_WORD_VECTORS.values(), ids=NOT_WORD_VECTORS)
def test_a_file_of_something_else_is_refused(write, content, message):
    path = write(content)
    with pytest.raises(SightlineError) as raised:
        read_word_vectors(path, None, Problems())
    assert str(raised.value).startswith(f"{path} holds no word vectors: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": np.array(["a"])}, "an array is missing"),
        ({"words": np.array([1]), "vectors": np.ones((1, 2))}, "`words` is not a list of strings"),
        ({"words": np.array(["a"], dtype=object), "vectors": np.ones((1, 2))}, "cannot be read"),
        ({"words": np.array(["a", "b"]), "vectors": np.ones((1, 2))}, "each of 2 words"),
        ({"words": np.array(["a"]), "vectors": np.ones(1)}, "float64 of shape (1,)"),
        ({"words": np.array(["a"]), "vectors": np.array([["x"]])}, "<U1 of shape (1, 1)"),
    ],
)
def test_a_npz_of_something_else_is_refused(tmp_path, write, arrays, message):
    path = write(npz(tmp_path / "v.npz", **arrays))
    with pytest.raises(SightlineError) as raised:
        read_word_vectors(path, None, Problems())
    assert message in str(raised.value)


def test_a_truncated_npz_is_refused(tmp_path, write):
    content = npz(tmp_path / "v.npz", words=np.array(["a"]), vectors=np.ones((1, 2)))
    with pytest.raises(SightlineError, match="it cannot be read"):
        read_word_vectors(write(content[:-50]), None, Problems())
    damaged = bytearray(content)
    with zipfile.ZipFile(tmp_path / "v.npz") as archive:
        start = archive.getinfo("vectors.npy").header_offset
    damaged[start + 170] ^= 1  # a bit of a number, which the checksum finds
    with pytest.raises(SightlineError, match="it cannot be read"):
        read_word_vectors(write(bytes(damaged)), None, Problems())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SightlineError, match=r"v.bin cannot be read: No such file"):
        read_word_vectors(tmp_path / "v.bin", None, Problems())


def test_embedding_has_the_vectors_of_known_words_and_small_random_ones_elsewhere():
    vocabulary = Vocabulary(["<unk>", "a", "new", "the"])
    vectors = WordVectors(["the", "unused", "a"], np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    matrix, coverage = embedding_matrix(vocabulary, vectors, 2, rng=np.random.default_rng(0))
    assert matrix.dtype == np.float32
    assert matrix[[1, 3]].tolist() == [[5, 6], [1, 2]]
    assert (np.abs(matrix[[0, 2]]) <= 0.2).all()
    assert coverage == Coverage(2, 3)
    assert str(coverage) == "2 of 3 words (66.7 %) have a vector"
    alone, _ = embedding_matrix(vocabulary, None, 2, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(matrix[[0, 2]], alone[[0, 2]])


def test_embedding_without_vectors_is_uniform():
    vocabulary = Vocabulary(["<unk>", *map(str, range(200))])
    matrix, coverage = embedding_matrix(vocabulary, None, rng=np.random.default_rng(0))
    assert matrix.shape == (201, 300)
    # Of a uniform distribution within 0.2 the deviation is 0.2 / sqrt(3).
    assert matrix.std() == pytest.approx(0.2 / 3**0.5, rel=0.01)
    assert str(coverage) == "0 of 200 words (0.0 %) have a vector"


def test_embedding_of_another_dimension_is_refused():
    vectors = WordVectors(["a"], np.ones((1, 50), np.float32))
    vocabulary = Vocabulary(["<unk>", "a"])
    with pytest.raises(SightlineError, match="have 50 dimensions, but the model expects 300"):
        embedding_matrix(vocabulary, vectors, rng=np.random.default_rng(0))


def test_coverage_of_nothing_and_of_much():
    assert str(Coverage(0, 0)) == "0 of 0 words (0.0 %) have a vector"
    assert str(Coverage(7912, 8034)) == "7,912 of 8,034 words (98.5 %) have a vector"


def test_the_two_real_files_agree(shared_data):
    folder = shared_data / "word_vectors"
    problems = Problems()
    words = ["the", "dog", "skateboard", "not-a-word"]
    archive = read_word_vectors(folder / "glove.840B.300d.npz", words, problems)
    lines = read_word_vectors(folder / "glove.840B.300d.top5000.txt.gz", words, problems)
    assert archive.words == ["the", "dog", "skateboard"]
    assert lines.words == ["the", "dog"]
    assert archive.dimension == lines.dimension == 300
    # Float16 in one, four digits in the other.
    np.testing.assert_allclose(archive.vectors[:2], lines.vectors, rtol=1e-3)
    assert problems.count == 0
