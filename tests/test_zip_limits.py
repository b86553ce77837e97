"""Archives and XML of strangers: bombs are refused, damage is a sentence."""

import io
import struct
import zipfile
import zlib

import pytest

from sightline.problems import SightlineError
from sightline.safe_xml import MAX_DEPTH, attribute, local, parse_xml
from sightline.zip_limits import Archive, ZipLimits


def archive(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def test_members_are_read_by_name(tmp_path):
    path = archive(tmp_path / "a.zip", {"a/b.txt": "hello", "../outside": "x"})
    with Archive(path) as found:
        assert found.names() == ["a/b.txt", "../outside"]
        assert found.read("a/b.txt") == b"hello"
        assert found.find("nothing") is None
        with pytest.raises(SightlineError, match="holds no 'nothing'"):
            found.read("nothing")
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]  # nothing was unpacked


def test_members_without_a_name_are_no_hindrance(tmp_path):
    path = archive(tmp_path / "a.zip", {"a.txt": "hello"})
    with zipfile.ZipFile(path, "a") as file:
        nameless = zipfile.ZipInfo("x")
        nameless.filename = ""
        file.writestr(nameless, "x")
    with Archive(path) as found:
        assert found.read("a.txt") == b"hello" and found.replaced == 0


def test_a_bomb_is_refused_after_few_bytes(tmp_path):
    path = archive(tmp_path / "bomb.zip", {"bomb": b"\0" * 30_000_000})
    with Archive(path) as found, pytest.raises(SightlineError, match="zip bomb"):
        found.read("bomb")


def test_all_members_together_are_limited(tmp_path):
    path = archive(tmp_path / "a.zip", {"a": b"x" * 60, "b": b"x" * 60})
    with Archive(path, ZipLimits(total_bytes=100)) as found:
        found.read("a")
        with pytest.raises(SightlineError, match="limits"):
            found.read("b")
    with pytest.raises(SightlineError, match="2 files, more than 1"):
        Archive(path, ZipLimits(members=1))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_members_with_one_name_the_last_is_read_and_the_others_are_counted(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name, data in (("a", "1"), ("b/", ""), ("a", "2"), ("b/", ""), ("A", "3"), ("a", "4")):
            file.writestr(name, data)
    with Archive(path) as found:
        assert (found.read("a"), found.replaced) == (b"4", 2)


@pytest.mark.parametrize(
    ("data", "is_text"),
    [
        (b"Text\r\n\f\tmore", True),
        ("Text \u00e9".encode("latin-1"), True),
        ("Text".encode("utf-16"), True),
        ("Text".encode("utf-32"), True),
        ("<a/>".encode("utf-16-le"), True),
        ("<a/>".encode("utf-16-be"), True),
        ("<a/>".encode("utf-32-be"), True),
        (b"x" * 10_000_000, True),
        (b"", False),
        (b"\x89PNG\r\n\x1a\n", False),
        (b"\0\1\0\0font", False),
    ],
)
def test_texts_are_known_by_how_they_begin(tmp_path, data, is_text):
    with Archive(archive(tmp_path / "a.zip", {"a": data})) as found:
        assert found.holds_text("a") is is_text


def test_damage_is_a_sentence(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(SightlineError, match="damaged"):
        Archive(path)
    archive(path, {"a": b"hello " * 100}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"hello hello", b"jello hello", 1))
    with Archive(path) as found, pytest.raises(SightlineError, match="cannot be unpacked"):
        found.read("a")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("kept", [0, 10, 599])
def test_a_size_that_is_understated_cuts_no_text_silently(tmp_path, method, kept):
    """The checksum is that of what would be left."""
    text = b"hello " * 100
    path = archive(tmp_path / "a.zip", {"a": text}, method)
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, entry + 16, zlib.crc32(text[:kept]))
    struct.pack_into("<I", data, entry + 24, kept)
    path.write_bytes(data)
    with Archive(path) as found:
        with pytest.raises(SightlineError, match="cannot be unpacked"):
            found.read("a")
        if kept < 512:
            with pytest.raises(SightlineError, match="cannot be unpacked"):
                found.holds_text("a")


def test_a_packed_size_that_is_understated_cuts_no_text_silently(tmp_path):
    text = bytes(range(32, 127)) * 10
    path = archive(tmp_path / "a.zip", {"a": text})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    cut = zlib.decompressobj(-15).decompress(data[31:91])
    assert 0 < len(cut) < len(text)
    struct.pack_into("<III", data, entry + 16, zlib.crc32(cut), 60, len(cut))
    path.write_bytes(data)
    with Archive(path) as found, pytest.raises(SightlineError, match="cannot be unpacked"):
        found.read("a")


def test_encrypted_members_are_refused(tmp_path):
    path = archive(tmp_path / "a.zip", {"a": b"hello"}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with Archive(path) as found:
        for look in (found.read, found.holds_text):
            with pytest.raises(SightlineError, match="password"):
                look("a")


def test_xml_names_and_text():
    root = parse_xml(b'<a xmlns="urn:x" xmlns:y="urn:y" y:k="v"><b>1 &lt; 2</b></a>')
    assert root.tag == "{urn:x}a"
    assert local(root.tag) == "a"
    assert attribute(root, "k") == "v"
    assert [child.text for child in root] == ["1 < 2"]


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        '<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1/"> %b;]><a/>',
    ],
)
def test_xml_with_entities_is_refused_in_any_encoding(text):
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(SightlineError, match="entities"):
            parse_xml(text.encode(encoding))


def test_xml_may_name_a_document_type_that_is_not_loaded():
    assert parse_xml(b'<!DOCTYPE a PUBLIC "-//X" "http://127.0.0.1/a.dtd"><a/>').tag == "a"


ELSEWHERE = '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd">'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_of_html_have_their_meaning_and_no_other_is_lost(encoding):
    text = f"{ELSEWHERE}<a b=\"&amp;&#233;'&quot;\" c='\"&lt;'>caf&eacute; &amp; &hellip;</a>"
    root = parse_xml(text.encode(encoding))
    assert (root.text, root.attrib) == ("caf\xe9 & \u2026", {"b": "&\xe9'\"", "c": '"<'})
    for start, unknown in (
        (ELSEWHERE, "<a>one &secret; two</a>"),
        (ELSEWHERE, '<a><b c="&amp;" d="1 &eacute; 2"/></a>'),
        (ELSEWHERE, "<a b='&secret;'/>"),
        ("<!DOCTYPE a [%more;]>", "<a b='&secret;'/>"),
        ("<!DOCTYPE a [%more;]>", "<a>&secret;</a>"),
    ):
        with pytest.raises(SightlineError, match="entities of another file"):
            parse_xml((start + unknown).encode(encoding))


@pytest.mark.parametrize("name", ["shift_jis", "hex", "utf-7", "idna", "punycode", "nonsense"])
def test_an_encoding_that_is_not_read_is_a_sentence(name):
    with pytest.raises(SightlineError, match="encoding that cannot be read"):
        parse_xml(f'<?xml version="1.0" encoding="{name}"?><a/>'.encode())


def test_deep_and_broken_xml():
    deep = io.BytesIO()
    deep.write(b"<a>" * (MAX_DEPTH + 1) + b"</a>" * (MAX_DEPTH + 1))
    with pytest.raises(SightlineError, match="levels"):
        parse_xml(deep.getvalue())
    for broken in (b"", b"<a>", b"<a></b>", b"\xff\xfe\xff"):
        with pytest.raises(SightlineError, match="bad XML"):
            parse_xml(broken)
