import orjson
from hypothesis import given
from hypothesis import strategies as st
from page_tags import Tags, check_policy

from sightline.html_writing import clean, data_address, page_head, page_scripts

STYLES, SCRIPTS = ["p { color: red }", "a > b { }"], ["const a = '</p>'", "let b"]


def test_the_policy_names_each_style_and_script_of_the_page():
    page = Tags(page_head("A &lt;b>", STYLES, SCRIPTS) + "<body>" + page_scripts({}, SCRIPTS))
    check_policy(page)
    assert [text for tag, _, text in page.code if tag == "style"] == STYLES
    assert "A <b>" in page.text


def test_a_page_without_scripts_may_run_none():
    page = Tags(page_head("A", STYLES))
    check_policy(page)
    assert "script-src" not in page.rules()


@given(
    st.dictionaries(st.text(), st.text() | st.sampled_from(["</script>", "<!--", "]]>", "\u2028"]))
)
def test_data_reaches_the_script_as_it_was_and_never_ends_its_block(data):
    page = Tags(page_scripts(data, SCRIPTS))
    (block, *scripts) = page.code
    assert block[:2] == ("script", "application/json")
    assert orjson.loads(block[2]) == data
    assert [text for _, _, text in scripts] == SCRIPTS


@given(st.text(st.characters()))
def test_what_a_document_says_stays_text(text):
    found = "".join(Tags(f'<p title="{clean(text)}">{clean(text)}').text)
    assert len(found) == len(text)
    clean(text).encode("utf-8")  # half a surrogate pair could not be written
    assert not {"<", ">", '"'} & set(clean(text))


def test_a_file_as_an_address():
    assert data_address(b"\xff\xd8") == "data:image/jpeg;base64,/9g="
    assert data_address(b"<svg>", "image/svg+xml") == "data:image/svg+xml;base64,PHN2Zz4="
