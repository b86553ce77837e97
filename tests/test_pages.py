import pytest

from sightline.pages import (
    Block,
    BlockKind,
    LeftOut,
    Page,
    PageImage,
    layout_links,
    page_to_document,
)

HEADING, TEXT, CAPTION, CODE = (
    BlockKind.HEADING,
    BlockKind.PARAGRAPH,
    BlockKind.CAPTION,
    BlockKind.CODE,
)


def page(*parts, **options):
    """A page of (kind, text) blocks and of images, each after the block before it."""
    blocks, images = [], []
    for part in parts:
        if isinstance(part, tuple):
            blocks.append(Block(*part))
        else:
            images.append(PageImage(part, len(blocks) - 1))
    return Page(None, tuple(blocks), tuple(images), **options)


def linked(given, **options):
    """Which texts each image is linked to."""
    document = page_to_document(given, "p", links_from_layout=True, **options)
    return [
        [document.sentences[s] for s, i in document.links if i == image]
        for image in range(len(document.images))
    ]


def test_every_unit_has_its_offsets_in_the_text_form():
    given = page(
        (HEADING, "A title", 1), (TEXT, "One. Two."), "a.jpg", (CODE, "x\n\ny"), (CAPTION, "Three.")
    )
    for unit, sentences in {
        "paragraph": ("One. Two.", "Three."),
        "sentence": ("One.", "Two.", "Three."),
    }.items():
        document = page_to_document(given, "p", unit=unit)
        assert document.sentences == sentences
        spans = document.extra["spans"]
        assert tuple(given.text[start:end] for start, end in spans) == sentences
        assert document.extra["headings"] == [[1, 0, "A title"]]
        assert document.extra["left_out"] == {"text": {"code": 4}}
        assert document.links is None
    assert [given.text[start:end] for start, end in given.spans()] == [
        block.text for block in given.blocks
    ]


def test_an_image_keeps_its_alt_caption_and_place():
    image = PageImage("a.jpg", 1, offset=4, alt="", caption="A caption")
    given = Page("T", (Block(TEXT, "First"), Block(TEXT, "Some text")), (image,), "de")
    extra = page_to_document(given, "p").extra
    assert (extra["alts"], extra["captions"], extra["positions"]) == ([""], ["A caption"], [11])
    assert (extra["title"], extra["lang"]) == ("T", "de")
    before = page("a.jpg", (TEXT, "Text"), "b.jpg")
    assert page_to_document(before, "p").extra["positions"] == [0, 4]


def test_the_language_of_the_page_chooses_the_rules_of_sentences():
    text = "Das ist z.B. gut. Und das auch."
    german = page((TEXT, text), language="de-AT")
    assert len(page_to_document(german, "p", unit="sentence").sentences) == 2
    unknown = page((TEXT, "One. Two."), language="tlh")
    assert len(page_to_document(unknown, "p", unit="sentence").sentences) == 2


def test_an_image_is_linked_to_the_block_it_follows():
    """As in the guides, whose blocks are paragraphs and list items."""
    given = page((TEXT, "The variants are:"), "a", (TEXT, "The first board."), "b", "c")
    assert linked(given) == [["The variants are:"], ["The first board."], ["The first board."]]


def test_an_image_that_opens_a_section_is_linked_to_the_block_after_it():
    given = page((TEXT, "Before"), (HEADING, "Fusion"), "a", (TEXT, "Works in the cloud."))
    assert linked(given) == [["Works in the cloud."]]


def test_an_image_alone_in_its_section_is_linked_to_nothing():
    given = page((TEXT, "Before"), (HEADING, "Cast"), "a", (HEADING, "Tips"), (TEXT, "After"))
    assert linked(given) == [[]]


def test_an_image_is_linked_to_the_block_it_stands_in():
    blocks = (Block(TEXT, "Before"), Block(TEXT, "Around"), Block(TEXT, "After"))
    given = Page(None, blocks, (PageImage("a", 1, offset=3), PageImage("b", 1, offset=0)))
    assert linked(given) == [["Around"], ["Around"]]


def test_an_image_is_linked_to_its_caption_and_the_next_one_is_not():
    blocks = (Block(TEXT, "Before"), Block(CAPTION, "Figure 1"), Block(TEXT, "After"))
    first = PageImage("a", 0, caption="Figure 1", caption_blocks=(1,))
    given = Page(None, blocks, (first, PageImage("b", 1)))
    assert linked(given) == [["Figure 1"], ["Before"]]


def test_headings_code_and_short_blocks_are_stepped_over():
    given = page((TEXT, "A paragraph of text."), (TEXT, "ESP-01"), (CODE, "x = 1"), "a")
    assert linked(given, minimum_tokens=4) == [["A paragraph of text."]]
    assert linked(given) == [["ESP-01"]]
    document = page_to_document(given, "p", minimum_tokens=4)
    assert document.extra["left_out"]["text"] == {"code": 5, "short": 6}
    heading = Page(None, (Block(HEADING, "H"), Block(TEXT, "T")), (PageImage("a", 0, offset=0),))
    assert linked(heading) == [["T"]]


def test_all_sentences_of_the_block_are_linked():
    assert linked(page((TEXT, "One. Two."), "a"), unit="sentence") == [["One.", "Two."]]


def test_layout_links_are_of_blocks():
    given = page((HEADING, "H"), (TEXT, "T"), "a", (HEADING, "H"), "b", (TEXT, "U"))
    assert layout_links(given) == [(1, 0), (3, 1)]
    assert layout_links(given, linkable={1}) == [(1, 0)]


def test_an_empty_page_gives_an_empty_document():
    document = page_to_document(Page(None, (), ()), "p", links_from_layout=True)
    assert (document.sentences, document.images, document.links) == ((), (), ())


@pytest.mark.parametrize("unit", ["paragraph", "sentence"])
def test_what_was_left_out_is_handed_on_and_not_changed(unit):
    left_out = LeftOut()
    left_out.text["navigation"] = 7
    left_out.images["icon"] = 2
    given = page((TEXT, "T"), (CODE, "c"), left_out=left_out)
    record = page_to_document(given, "p", unit=unit).extra["left_out"]
    assert record == {"text": {"code": 1, "navigation": 7}, "images": {"icon": 2}}
    assert left_out.text == {"navigation": 7}


def test_a_text_too_long_to_be_split_in_time_keeps_its_blocks():
    page = Page(None, (Block(BlockKind.PARAGRAPH, "One. Two."),), ())
    assert page_to_document(page, "a", unit="sentence").sentences == ("One.", "Two.")
    late = page_to_document(page, "a", unit="sentence", read_seconds=9.6)
    assert late.sentences == ("One. Two.",)
