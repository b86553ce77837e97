import io
import random
import tarfile
import tracemalloc
from functools import partial

import orjson
import pytest
import test_readers
from test_mmc4 import RECORD as MMC4_RECORD
from test_obelics import RECORD as OBELICS_RECORD

from sightline.corpus import read
from sightline.documents import Document
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers import webdataset
from sightline.readers.mmc4 import document_from_mmc4
from sightline.readers.native import open_for_reading
from sightline.readers.obelics import document_from_obelics
from sightline.readers.tar_members import TarError, tar_members
from sightline.readers.tar_shards import write_shard, write_shards
from sightline.readers.webdataset import read_samples, read_webdataset, sample_files

JPEG = b"\xff\xd8\xff" + b"j" * 700
PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 20
NATIVE = {"id": "d", "sentences": ["a"], "images": ["images/x.jpg", "images/y.png"]}


def entry(name, data=b"", kind=tarfile.REGTYPE, form=tarfile.GNU_FORMAT, **fields):
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(form, "utf-8", "surrogateescape") + data + bytes(-len(data) % 512)


def sample(key, record=NATIVE, *images):
    parts = [entry(f"{key}.json", orjson.dumps(record))]
    parts += [entry(f"{key}.{index}.jpg", data) for index, data in enumerate(images)]
    return b"".join(parts)


END = bytes(1024)


read_tar = partial(test_readers.read_bytes, reader=read_webdataset, name="shard.tar")


def files(path):
    """Give the documents of a shard with the bytes of their images."""
    return [
        (sample.document, [sample.image(index) for index in range(len(sample.document.images))])
        for sample in read_samples(path, Problems(strict=True))
    ]


# Samples


def test_documents_in_any_format(tmp_path):
    records = [NATIVE, MMC4_RECORD, OBELICS_RECORD]
    data = b"".join(sample(f"{number:06d}", record) for number, record in enumerate(records))
    documents, problems = read_tar(data + END, tmp_path)
    assert problems == []
    assert documents == [
        Document("d", ("a",), ("images/x.jpg", "images/y.png")),
        document_from_mmc4(MMC4_RECORD, "000001"),
        document_from_obelics(OBELICS_RECORD, "000002"),
    ]


def test_the_key_is_an_id_where_a_record_has_none(tmp_path):
    nameless = {key: value for key, value in MMC4_RECORD.items() if key != "url"}
    data = sample("a/000", {"sentences": ["a"], "images": ["x"]}) + sample("a/001", nameless)
    documents, problems = read_tar(data + END, tmp_path)
    assert problems == []
    assert [document.id for document in documents] == ["a/000", "a/001"]


def test_pairs(tmp_path):
    data = (
        entry("000.jpg", JPEG)
        + entry("000.json", b'{"caption": "A dog.", "width": 5}')
        + entry("000.txt", "A dög.\n".encode())
        + entry("000.cls", b"3")
        + entry("train/001.txt", b"A cat.")
        + entry("train/001.left.JPG", JPEG)
        + entry("train/001.right.png", PNG)
    )
    documents, problems = read_tar(data + END, tmp_path)
    assert problems == []
    metadata = {"webdataset": {"json": {"caption": "A dog.", "width": 5}}}
    assert documents == [
        Document("000", ("A dög.",), ("images/000.jpg",), extra=metadata),
        Document("train/001", ("A cat.",), ("images/001.left.JPG", "images/001.right.png")),
    ]
    first, second = files(tmp_path / "shard.tar")
    assert (first[1], second[1]) == ([JPEG], [JPEG, PNG])
    others = [sample.others for sample in read_samples(tmp_path / "shard.tar", Problems())]
    assert others == [1, 0]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["0.jpg", "1.png"], [0, 1]),
        (["1.png", "0.jpg"], [1, 0]),
        (["1.jpg"], [None, 0]),
        (["x.jpg", "y.png"], [0, 1]),  # as WebDataset's own answers suggest it
        (["X.JPG", "y.PNG"], [0, 1]),
        (["y.png"], [None, 0]),
        (["z.jpg", "y.png"], [None, 1]),
        (["2.jpg", "7.jpg"], [None, None]),
        ([], [None, None]),
    ],
)
def test_images_are_found_by_number_or_by_name(names, found, tmp_path):
    contents = [JPEG, PNG]
    data = entry("7.json", orjson.dumps(NATIVE))
    data += b"".join(entry(f"7.{name}", contents[i]) for i, name in enumerate(names))
    read_tar(data + END, tmp_path)
    ((_, images),) = files(tmp_path / "shard.tar")
    assert images == [None if index is None else contents[index] for index in found]


def test_the_only_image_needs_no_number(tmp_path):
    record = {**NATIVE, "images": ["https://a.org/b"]}
    read_tar(entry("7.jpg", JPEG) + entry("7.json", orjson.dumps(record)) + END, tmp_path)
    ((document, images),) = files(tmp_path / "shard.tar")
    assert (document.images, images) == (("https://a.org/b",), [JPEG])


def test_native_record_without_images_names_the_files(tmp_path):
    documents, _ = read_tar(sample("7", {"sentences": ["a"]}, JPEG, PNG) + END, tmp_path)
    assert documents[0].images == ("images/7.0.jpg", "images/7.1.jpg")


@pytest.mark.parametrize(
    ("parts", "field", "reason"),
    [
        ([("json", b"{")], "json", "not valid JSON at line 1, column"),
        ([("json", b'{"sentences": [NaN]}')], "json", "not valid JSON at line 1, column"),
        ([("json", b"[" * 100_000)], "json", "not valid JSON"),
        ([("json", b"[]")], None, "expected a document in a .json file or a text in a .txt"),
        ([("json", b"{}")], None, "expected a document in a .json file or a text in a .txt"),
        ([("jpg", JPEG)], None, "expected a document in a .json file or a text in a .txt"),
        ([("json", orjson.dumps({**NATIVE, "links": 5}))], "links", "expected a list of pairs"),
        ([("json", orjson.dumps({**MMC4_RECORD, "url": 5}))], "url", "expected a string or null"),
        ([("txt", b"\xff"), ("jpg", JPEG)], "txt", "not valid UTF-8 at byte 1"),
        ([("txt", b" "), ("jpg", JPEG)], "sentences[0]", "expected a non-empty string"),
        ([("txt", b"a dog")], "images", "expected at least one, found an empty list"),
    ],
)
def test_bad_sample_is_skipped_with_shard_key_and_field(parts, field, reason, tmp_path):
    bad = b"".join(entry(f"bad.{extension}", data) for extension, data in parts)
    documents, problems = read_tar(sample("0") + bad + sample("1") + END, tmp_path)
    assert len(documents) == 2
    assert [(p.line, p.field) for p in problems] == [("bad", field)]
    assert problems[0].reason.startswith(reason)
    assert problems[0].file == str(tmp_path / "shard.tar")
    with pytest.raises(ProblemError):
        list(read(tmp_path / "shard.tar", strict=True))


def test_record_over_the_limit_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(webdataset, "MAX_LINE", 1000)
    large = {**NATIVE, "sentences": ["a" * 1000]}
    documents, problems = read_tar(sample("0", large) + sample("1") + END, tmp_path)
    assert [document.id for document in documents] == ["d"]
    assert [(p.line, p.field) for p in problems] == [("0", "json")]


def test_image_over_the_limit_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(webdataset, "MAX_IMAGE", 100)
    read_tar(sample("0", NATIVE, JPEG, PNG) + END, tmp_path)
    assert files(tmp_path / "shard.tar")[0][1] == [None, PNG]


def test_sample_of_too_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(webdataset, "_MAX_MEMBERS", 3)
    documents, problems = read_tar(sample("0", NATIVE, *[JPEG] * 4) + END, tmp_path)
    assert len(documents) == 1
    assert [p.line for p in problems] == ["0.2.jpg", "0.3.jpg"]


# Archives that nobody vouches for


def test_what_belongs_to_no_sample_is_ignored_and_counted(tmp_path):
    data = (
        entry("0.json", kind=tarfile.SYMTYPE, linkname="/etc/passwd")
        + entry("0.txt", kind=tarfile.LNKTYPE, linkname="/etc/passwd")
        + entry("0.jpg", kind=tarfile.CHRTYPE, devmajor=1, devminor=5)
        + entry("0.png", kind=tarfile.FIFOTYPE)
        + entry("folder.json", kind=tarfile.DIRTYPE)
        + entry(".hidden", b"x")
        + entry("README", b"x")
        + entry("a/._1.json", b"x")
        + sample("1")
    )
    documents, problems = read_tar(data + END, tmp_path)
    assert [document.id for document in documents] == ["d"]
    assert [(p.line, p.reason) for p in problems] == [
        ("0.json", "a symbolic link, which is ignored"),
        ("0.txt", "a hard link, which is ignored"),
        ("0.jpg", "a device, which is ignored"),
        ("0.png", "a pipe, which is ignored"),
        (".hidden", "ignored: no part of a sample by its name"),
        ("README", "ignored: no part of a sample by its name"),
    ]


def test_names_are_keys_and_never_paths(tmp_path):
    names = ["../../up", "/etc/passwd", "a\\b", "a\nb", "\udcff\udcfe", "ж" * 40]
    record = {key: NATIVE[key] for key in ("sentences", "images")}
    data = b"".join(sample(name, record, JPEG) for name in names)
    documents, problems = read_tar(data + END, tmp_path)
    assert problems == []
    assert [document.id for document in documents] == [*names[:4], "\\xff\\xfe", names[5]]
    assert [path.name for path in tmp_path.iterdir()] == ["shard.tar"]
    assert orjson.dumps([document.id for document in documents])


def test_a_file_that_is_there_twice_counts_once(tmp_path):
    other = entry("0.json", orjson.dumps({**NATIVE, "id": "other"}))
    documents, problems = read_tar(sample("0") + other + END, tmp_path)
    assert [document.id for document in documents] == ["d"]
    assert [p.line for p in problems] == ["0.json"]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_archives_of_every_kind(form, tmp_path):
    """Names and sizes are what Python's own module says, long ones and foreign ones too."""
    names = ["0.json", f"{'folder/' * 20}1.json", f"{'n' * 98}.x"]
    names += [] if form == tarfile.USTAR_FORMAT else [f"{'long' * 60}.jpg", "жук.0.jpg"]
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=form) as archive:
        for size, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size = size * 300
            info.pax_headers = {"comment": "c" * 2000} if form == tarfile.PAX_FORMAT else {}
            archive.addfile(info, io.BytesIO(bytes([size]) * info.size))
    with open_for_reading(path) as file:
        found = list(tar_members(file))
        assert [(member.name, member.size) for member in found] == [
            (name, size * 300) for size, name in enumerate(names)
        ]
        for size, member in enumerate(found):
            file.seek(member.offset)
            assert file.read(member.size) == bytes([size]) * member.size


def pax(*records):
    parts = []
    for key, value in records:
        body = f" {key}={value}\n".encode()
        length = len(body)
        while length != len(str(length)) + len(body):
            length = len(str(length)) + len(body)
        parts.append(str(length).encode() + body)
    return entry("pax", b"".join(parts), tarfile.XHDTYPE)


def test_a_size_in_an_extended_header_is_for_the_file_and_not_for_another_header(tmp_path):
    # With the size taken for that of the long name, the walk would lose its step.
    longname = entry("long", b"0.json\0", tarfile.GNUTYPE_LONGNAME)
    data = orjson.dumps(NATIVE)
    claimed = pax(("size", len(data)), ("comment", "x"))
    file = entry("short", b"", size=0)[:512] + data + bytes(-len(data) % 512)
    documents, problems = read_tar(claimed + longname + file + sample("1") + END, tmp_path)
    assert problems == []
    assert [document.id for document in documents] == ["d", "d"]


def with_size(size, kind=tarfile.REGTYPE):
    """Give a header that claims a size for which there are no bytes."""
    info = tarfile.TarInfo("0.jpg")
    info.type, info.size = kind, 0
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    start = b"\xff" if size < 0 else b"\x80"  # base 256, for sizes that octal digits cannot hold
    header[124:136] = start + size.to_bytes(11, "big", signed=True)
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b"x" * 512, "the archive is damaged"),
        (b"x" * 100, "the archive ends early, in a header"),
        (with_size(10**12), "the archive ends early, in 0.jpg"),
        (with_size(2**70), "the archive ends early, in 0.jpg"),
        (with_size(-1024), "the archive is damaged: 0.jpg has a negative size"),
        (with_size(10**12, tarfile.XHDTYPE), "the archive is damaged: an extended header of"),
        (with_size(2**70, tarfile.GNUTYPE_LONGNAME), "the archive is damaged: an extended header"),
        (with_size(500, tarfile.XGLTYPE), "the archive has no end mark"),
        (with_size(0, tarfile.GNUTYPE_SPARSE), "0.jpg is stored as a sparse file"),
        (entry("p", b"0 path=x\n", tarfile.XHDTYPE), "the archive is damaged: an extended header"),
        (entry("p", b"-5 path=x\n", tarfile.XHDTYPE), "the archive is damaged: an extended header"),
        (entry("p", b"99 path=x\n", tarfile.XHDTYPE), "the archive is damaged: an extended header"),
        (entry("p", b"1" * 50, tarfile.XHDTYPE), "the archive is damaged: an extended header"),
        (pax(("size", "-1")) + entry("0.jpg"), "the archive is damaged: a size of '-1'"),
        (pax(("size", "9" * 19)) + entry("0.jpg"), "the archive ends early, in 0.jpg"),
    ],
)
def test_damaged_archive_keeps_the_samples_before(damage, reason, tmp_path):
    tracemalloc.start()
    try:
        documents, problems = read_tar(sample("0") + sample("1") + damage, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert len(documents) == 2
    assert [p.line for p in problems] == ["1"]
    assert problems[0].reason.startswith(reason)


def test_many_short_records_in_an_extended_header_take_no_time(tmp_path):
    data = pax(*[("a", "")] * 200_000)[:512] + b"5 a=\n" * 200_000
    data += bytes(-len(data) % 512)
    documents, problems = read_tar(data + sample("1") + END, tmp_path)
    assert (len(documents), problems) == (1, [])


def test_an_end_in_the_middle_is_not_the_end(tmp_path):
    """A hole in a download looks like an end; archives that stand together have several."""
    holed = bytearray(sample("0") + sample("1") + sample("2") + END)
    size = len(sample("0"))
    holed[size : size + 512] = bytes(512)
    documents, problems = read_tar(bytes(holed), tmp_path)
    assert len(documents) == 1 and "the archive is damaged" in problems[0].reason
    joined = sample("0") + END + bytes(512 * 20) + sample("1") + END
    documents, problems = read_tar(joined, tmp_path)
    assert (len(documents), problems) == (2, [])
    documents, problems = read_tar(sample("0") + END + bytes(2**24), tmp_path)
    assert len(documents) == 1 and "goes on with zeros" in problems[0].reason


def test_a_member_of_an_unknown_type_is_a_file(tmp_path):
    documents, problems = read_tar(
        entry("0.json", orjson.dumps(NATIVE), b"Z") + sample("1") + END, tmp_path
    )
    assert (len(documents), problems) == (2, [])


def test_archive_cut_anywhere_keeps_whole_samples(tmp_path):
    data = b"".join(sample(str(number), NATIVE, JPEG) for number in range(5)) + END
    size = len(sample("0", NATIVE, JPEG))
    cuts = range(0, 5 * size, 97)
    assert len(cuts) > 100
    for cut in cuts:
        documents, problems = read_tar(data[:cut], tmp_path)
        assert len(problems) == 1
        # One more where the cut is between the document and its image, or in the padding after.
        between = range(512 + len(orjson.dumps(NATIVE)), 1536)
        after = range(1536 + len(JPEG), size)
        assert len(documents) == cut // size + (cut % size in between or cut % size in after)
    for cut in (5 * size + 512, 5 * size + 700):  # the end mark has two blocks; one will do
        assert len(read_tar(data[:cut], tmp_path)[0]) == 5


def test_random_damage_never_gets_through(tmp_path):
    choose = random.Random(0)
    data = b"".join(sample(str(number), NATIVE, JPEG) for number in range(3)) + END
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(choose.randint(1, 20)):
            broken[choose.randrange(len(broken))] = choose.randrange(256)
        documents, _ = read_tar(bytes(broken), tmp_path)
        assert len(documents) <= 4


def test_walk_ends_on_an_empty_file(tmp_path):
    path = tmp_path / "a.tar"
    path.touch()
    with open_for_reading(path) as file, pytest.raises(TarError, match="no end mark"):
        next(tar_members(file))
    path.write_bytes(END)
    with open_for_reading(path) as file:
        assert list(tar_members(file)) == []


# Writing


def new_documents(count):
    for number in range(count):
        yield Document(f"d.{number}/x", ("a", "ж"), ("x.jpg", "y.png"), ((0, 1),), "val")


def new_samples(count, *images):
    for document in new_documents(count):
        yield sample_files(document, [(index, "jpg", data) for index, data in enumerate(images)])


def test_shard_comes_back(tmp_path):
    path = tmp_path / "a.tar"
    assert write_shard(new_samples(3, JPEG, PNG), path) == 3
    expected = [(document, [JPEG, PNG]) for document in new_documents(3)]
    assert files(path) == expected
    with tarfile.open(path) as archive:  # and others read it
        assert archive.getnames()[:4] == [
            "000000000.json",
            "000000000.0.jpg",
            "000000000.1.jpg",
            "000000001.json",
        ]
        assert archive.extractfile("000000001.1.jpg").read() == PNG
    again = tmp_path / "b.tar"
    write_shard(new_samples(3, JPEG, PNG), again)
    assert again.read_bytes() == path.read_bytes()


def test_shards_of_a_size(tmp_path):
    folder = tmp_path / "new" / "shards"
    assert write_shards(new_samples(10, JPEG), folder, 6000) == 10
    names = [path.name for path in sorted(folder.iterdir())]
    assert names == ["000000.tar", "000001.tar", "000002.tar", "000003.tar"]
    sizes = [path.stat().st_size for path in sorted(folder.iterdir())]
    assert max(sizes) < 6000 + 4096
    corpus = read(folder, strict=True)
    assert list(corpus) == list(new_documents(10))
    assert corpus.root == folder
    assert [len(list(read(path))) for path in sorted(folder.iterdir())] == [3, 3, 3, 1]


def test_folder_of_shards_appears_whole_or_not_at_all(tmp_path):
    def failing():
        yield from new_samples(5, JPEG)
        raise SightlineError("no more")

    with pytest.raises(SightlineError, match="no more"):
        write_shards(failing(), tmp_path / "out", 1000)
    with pytest.raises(SightlineError, match="document 'bad' cannot be written as JSON"):
        write_shards(
            [sample_files(Document("bad", ("\ud800",), ("x",)), [])], tmp_path / "out", 1000
        )
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    with pytest.raises(SightlineError, match="it exists and is not an empty folder"):
        write_shards(new_samples(1), tmp_path / "full", 1000)
    (tmp_path / "empty").mkdir()
    assert write_shards(new_samples(1), tmp_path / "empty", 1000) == 1


def test_memory_does_not_grow_with_the_shard(tmp_path):
    path = tmp_path / "a.tar"
    write_shard(new_samples(2000, b"\xff\xd8\xff" + bytes(50_000)), path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_webdataset(path, Problems())) == 2000
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
