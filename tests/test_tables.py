"""Results as pandas and Arrow tables and as link records."""

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pandas
import pyarrow
import pytest
from service_helpers import tiny_model

from sightline import Document, DocumentLinks, Link, links_table
from sightline.image_features import StoredImages
from sightline.image_files import FileFeatures
from sightline.installed_packages import install_command
from sightline.link_records import link_records
from sightline.linking import LinkChoices, link

COLUMNS = ["id", "sentence", "text", "image", "image_id", "score", "confidence", "status"]
DOCUMENT = Document("pets", ("A dog runs.", "A cat sleeps.", "=1+1"), ("a.jpg", "b.jpg", "c.jpg"))
FOUND = DocumentLinks(DOCUMENT, [Link(1, 0, 0.9, 0.75), Link(0, 2, 0.4, 0.5)])
RECORD = {
    "id": "shop",
    "links": [{"sentence": 0, "image": 1, "score": 0.5, "confidence": None}],
    "images": [
        {"id": "x.jpg", "status": "missing", "reason": "There is no such file."},
        {"id": "y.jpg", "status": "ok", "reason": None},
    ],
    "sentences": ["A hat."],
}


def test_a_row_is_a_link():
    frame = FOUND.to_pandas()
    assert [*frame.columns] == COLUMNS
    assert frame.to_dict("records")[0] == {
        "id": "pets", "sentence": 1, "text": "A cat sleeps.", "image": 0, "image_id": "a.jpg",
        "score": 0.9, "confidence": 0.75, "status": "ok",
    }  # fmt: skip
    assert frame["image"].tolist() == [0, 2]


def test_results_and_records_go_into_one_table():
    table = links_table([FOUND, RECORD])
    assert len(table) == 3
    assert [*table.columns] == COLUMNS
    assert [row["id"] for row in table] == ["pets", "pets", "shop"]
    assert links_table(FOUND).to_arrow().equals(FOUND.to_arrow())
    assert "3 rows" in repr(table)
    frame = table.to_pandas()
    assert np.isnan(frame["confidence"].iloc[2])
    assert frame["sentence"].dtype == "int64"


def test_images_without_a_link_have_rows_where_asked_for():
    frame = links_table([RECORD], every_image=True).to_pandas()
    assert frame["status"].tolist() == ["ok", "missing"]
    assert frame["image_id"].tolist() == ["y.jpg", "x.jpg"]
    assert frame["sentence"].isna().tolist() == [False, True]
    assert len(links_table([RECORD])) == 1


def test_columns_have_the_same_types_whatever_is_in_them():
    nothing = links_table([])
    assert nothing.to_arrow().schema == links_table([FOUND, RECORD]).to_arrow().schema
    assert [*nothing.to_pandas().columns] == COLUMNS
    both = pandas.concat([nothing.to_pandas(), FOUND.to_pandas()])
    assert len(both) == 2
    assert both["score"].dtype == "float64"
    assert len(pyarrow.concat_tables([nothing.to_arrow(), FOUND.to_arrow()])) == 2


def test_a_result_is_a_list_of_links_that_can_be_copied():
    assert [Link(1, 0, 0.9, 0.75), Link(0, 2, 0.4, 0.5)] == FOUND
    assert [one.image for one in FOUND] == [0, 2]
    again = copy.deepcopy(FOUND)
    assert (again, again.document) == (FOUND, DOCUMENT)
    assert repr(FOUND) == (
        "DocumentLinks('pets': sentence 1 - image 0 (75 %), sentence 0 - image 2 (50 %))"
    )
    assert repr(DocumentLinks(DOCUMENT)) == "DocumentLinks('pets': no links)"
    many = DocumentLinks(DOCUMENT, [Link(0, 0, 0.5)] * 9)
    assert repr(many).endswith("sentence 0 - image 0, 6 more)")


def test_the_record_of_a_result_is_what_the_command_writes():
    model = tiny_model()
    features = np.random.default_rng(0).normal(size=(3, 1280)).astype(np.float32)
    found = model.link(DOCUMENT, "dense", features=features)
    assert isinstance(found, DocumentLinks)
    assert found == link(model.similarity_matrix(DOCUMENT, features), "dense")
    rows = {name: row for row, name in enumerate(DOCUMENT.images)}
    store = FileFeatures(Path("s"), None, None, features, rows, files=(), failures={})
    (written,) = link_records(model, [DOCUMENT], StoredImages(store), LinkChoices("dense"))
    assert orjson.loads(orjson.dumps(written)) == orjson.loads(orjson.dumps(found.to_dict()))


@pytest.mark.parametrize(("package", "method"), [("pandas", "pandas"), ("pyarrow", "arrow")])
def test_a_missing_package_names_its_extra(package, method):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from sightline import links_table\n"
        f"links_table([]).to_{method}()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert install_command("tables") in done.stderr
