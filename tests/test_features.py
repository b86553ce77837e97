import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_files import largest_file, names

from sightline import files
from sightline.features import FeatureError, FeatureStore, write_feature_store
from sightline.problems import SightlineError

MATRIX = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
IDS = ["a", "b", "000000000042", "d.e", "鱼"]


def make(folder, matrix=MATRIX, name="net", id2row=None, manifest=None):
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{name}.npy", matrix)
    rows = {image: row for row, image in enumerate(IDS)} if id2row is None else id2row
    (folder / "id2row.json").write_bytes(rows if isinstance(rows, bytes) else orjson.dumps(rows))
    if manifest is not None:
        (folder / "manifest.json").write_bytes(
            manifest if isinstance(manifest, bytes) else orjson.dumps(manifest)
        )
    return folder


def message_of(folder):
    with pytest.raises(FeatureError) as raised:
        FeatureStore.open(folder)
    return str(raised.value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f2", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_vectors_are_the_rows_in_any_number_type_and_order(tmp_path, dtype, order):
    store = FeatureStore.open(make(tmp_path, np.asarray(MATRIX, dtype=dtype, order=order)))
    assert isinstance(store.matrix, np.memmap)
    assert (store.folder, store.backbone, store.manifest) == (tmp_path, "net", None)
    assert (len(store), store.dimension) == (5, 3)
    vectors = store.vectors([3, 0, 3])
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, MATRIX.astype(dtype).astype(np.float32)[[3, 0, 3]])
    assert store.vectors([]).shape == (0, 3)


def test_every_float16_becomes_the_same_float32(tmp_path):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 4)
    store = FeatureStore.open(make(tmp_path, every))
    np.testing.assert_array_equal(store.vectors(np.arange(len(every))), every.astype(np.float32))


@settings(deadline=None)
@given(st.lists(st.integers(0, 999), max_size=600))
def test_gathering_in_chunks_equals_indexing(tmp_path_factory, rows):
    matrix = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    store = FeatureStore.open(make(tmp_path_factory.mktemp("store"), matrix))
    np.testing.assert_array_equal(store.vectors(rows), matrix[np.array(rows, dtype=int)])


def test_images_are_found_by_id_and_by_path(tmp_path):
    store = FeatureStore.open(make(tmp_path))
    found = {
        "a": 0,
        "images/a.jpg": 0,
        r"C:\photos\b.JPEG": 1,
        "b.": 1,
        "000000000042": 2,
        "d.e": 3,
        "x/d.e.png": 3,
        "../鱼.webp": 4,
        "d": None,
        "": None,
        "a/": None,
        "A.jpg": None,
    }
    for image, row in found.items():
        assert store.find(image) == row, image
    expected = [-1 if row is None else row for row in found.values()]
    rows = store.rows(list(found))
    assert rows.dtype == np.int64
    assert rows.tolist() == expected
    assert store.rows([]).shape == (0,)


def test_the_exact_id_goes_before_the_name_without_folder(tmp_path):
    store = FeatureStore.open(make(tmp_path, id2row={"a": 0, "x/a.jpg": 1}))
    assert store.rows(["x/a.jpg", "y/a.jpg"]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("image", "expected"),
    [("a/b/c.jpg", "c"), (r"a\b\c.d.jpg", "c.d"), (".hidden", ".hidden"), ("plain", "plain")],
)
def test_image_id(image, expected):
    assert FeatureStore.image_id(image) == expected


def test_a_missing_image_is_never_the_last_row(tmp_path):
    store = FeatureStore.open(make(tmp_path))
    for rows in ([-1], [5], [0, -1, 2]):
        with pytest.raises(IndexError, match="rows must be within 0 to 4"):
            store.vectors(rows)
        with pytest.raises(IndexError, match="rows must be within 0 to 4"):
            store.non_finite(rows)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_that_are_not_finite_are_found(tmp_path, dtype):
    matrix = np.ones((1000, 3), dtype=dtype)
    matrix[[3, 998], [0, 2]] = np.nan
    matrix[300, 1] = -np.inf
    store = FeatureStore.open(make(tmp_path, matrix))
    assert store.non_finite(np.arange(1000)).tolist() == [3, 300, 998]
    assert store.non_finite([998, 5, 300]).tolist() == [998, 300]
    assert store.non_finite([]).tolist() == []


def test_a_store_without_images_opens(tmp_path):
    store = FeatureStore.open(make(tmp_path, MATRIX[:0], id2row={}))
    assert (len(store), store.dimension) == (0, 3)
    assert store.vectors(store.rows([])).shape == (0, 3)


def test_the_papers_release_names_no_backbone(tmp_path):
    assert FeatureStore.open(make(tmp_path, name="features")).backbone is None
    make(tmp_path, name="features", manifest={"backbone": "densenet-169"})
    assert FeatureStore.open(tmp_path).backbone == "densenet-169"


def test_the_manifest_says_which_of_several_matrices(tmp_path):
    make(tmp_path, MATRIX * 2, name="other")
    make(tmp_path, name="net", manifest={"backbone": "other", "version": 3})
    store = FeatureStore.open(tmp_path)
    assert store.backbone == "other"
    assert store.manifest == {"backbone": "other", "version": 3}
    np.testing.assert_array_equal(store.vectors([1]), MATRIX[[1]] * 2)


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    missing = tmp_path / "missing"
    assert message_of(missing) == f"{missing} is not a folder; expected a feature store."
    assert message_of(tmp_path) == f"{tmp_path} holds no .npy file, so it is no feature store."


def test_several_matrices_and_no_manifest_are_refused(tmp_path):
    make(tmp_path, name="one")
    make(tmp_path, name="two")
    assert message_of(tmp_path) == (
        f"{tmp_path} holds several .npy files (one, two) and no manifest.json that says which: "
        'add one such as {"backbone": "one"}.'
    )


@pytest.mark.parametrize(
    ("id2row", "message"),
    [
        (b"{", "id2row.json is not JSON"),
        (b"", "id2row.json is not JSON"),
        (b"[1]", "id2row.json must hold a JSON object"),
        ({"a": 5}, "the row of image 'a' is 5, expected a whole number below 5"),
        ({"a": -1}, "the row of image 'a' is -1, expected"),
        ({"a": 0, "b": 1.0}, "the row of image 'b' is 1.0, expected"),
        ({"a": "0"}, "the row of image 'a' is '0', expected"),
        ({"a": True}, "the row of image 'a' is True, expected"),
        ({"a": None}, "the row of image 'a' is None, expected"),
    ],
)
def test_bad_ids_are_refused(tmp_path, id2row, message):
    assert message in message_of(make(tmp_path, id2row=id2row))


def test_missing_ids_are_refused(tmp_path):
    (make(tmp_path) / "id2row.json").unlink()
    path = tmp_path / "id2row.json"
    assert message_of(tmp_path) == (f"{path} is missing; it says which row belongs to which image.")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"nonsense", "manifest.json is not JSON"),
        ([], "manifest.json must hold a JSON object"),
        ({"backbone": 7}, '"backbone" must be a string'),
        ({"backbone": "other"}, "names the backbone 'other', but there is no other.npy"),
        ({"backbone": "../net"}, "there is no ../net.npy beside it (found: net)"),
        ({"backbone": "net", "rows": 6}, '"rows" is 6, but the matrix has 5'),
        ({"backbone": "net", "dimension": 4}, '"dimension" is 4, but the matrix has 3'),
    ],
)
def test_a_manifest_that_does_not_match_is_refused(tmp_path, manifest, message):
    assert message in message_of(make(tmp_path, manifest=manifest))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.array([["a"]], dtype=object), "net.npy holds object, expected float16 or float32."),
        (np.ones((2, 2), dtype=np.int64), "net.npy holds int64, expected float16 or float32."),
        (np.ones(4), "net.npy has the shape (4,), expected images x dimension."),
        (np.ones((4, 2, 2)), "net.npy has the shape (4, 2, 2), expected images x dimension."),
        (np.ones((4, 0)), "net.npy has the shape (4, 0), expected images x dimension."),
        (np.array([(1, 2.0)], dtype=[("鱼", "i4"), ("b", "f4")]), "is not a .npy file: version 3"),
    ],
)
@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_a_matrix_of_something_else_is_refused(tmp_path, matrix, message):
    assert message in message_of(make(tmp_path, matrix, id2row={}))


def test_a_shape_of_truth_values_is_refused(tmp_path):
    path = make(tmp_path, np.ones((1, 3), np.float32), id2row={"a": 0}) / "net.npy"
    path.write_bytes(path.read_bytes().replace(b"(1, 3), }   ", b"(True, 3), }"))
    assert "net.npy has the shape (True, 3)" in message_of(tmp_path)


def test_a_truncated_matrix_says_how_much_is_missing(tmp_path):
    path = make(tmp_path) / "net.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert message_of(tmp_path) == (
        f"{path} is cut off: {len(whole) - 7} bytes, expected {len(whole)} for 5 rows of "
        "3 float32 numbers."
    )
    for length in (0, 3, 9, 50):
        path.write_bytes(whole[:length])
        assert "net.npy is not a .npy file" in message_of(tmp_path)


@settings(deadline=None)
@given(st.integers(0, 127), st.binary(min_size=1, max_size=8))
def test_a_damaged_header_gives_an_error_or_a_store(tmp_path_factory, place, garbage):
    folder = make(tmp_path_factory.mktemp("store"))
    content = bytearray((folder / "net.npy").read_bytes())
    content[place : place + len(garbage)] = garbage
    (folder / "net.npy").write_bytes(content)
    try:
        store = FeatureStore.open(folder)
    except FeatureError as error:
        assert str(folder) in str(error)
    else:
        assert store.vectors([0]).shape == (1, store.dimension)


def test_what_is_written_opens(tmp_path):
    folder = tmp_path / "new" / "features"
    write_feature_store(folder, "net.v2", IDS, MATRIX, {"version": 1, "hash": "abc"})
    assert names(folder) == ["id2row.json", "manifest.json", "net.v2.npy"]
    store = FeatureStore.open(folder)
    assert store.backbone == "net.v2"
    assert store.matrix.dtype == np.float16
    assert store.manifest == {
        "version": 1,
        "hash": "abc",
        "backbone": "net.v2",
        "rows": 5,
        "dimension": 3,
    }
    assert store.rows(IDS).tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(store.vectors(range(5)), MATRIX.astype(np.float16))
    np.testing.assert_array_equal(np.load(folder / "net.v2.npy"), MATRIX.astype(np.float16))


def test_more_rows_than_a_chunk_and_another_type(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(1000, 2))
    write_feature_store(tmp_path, "net", list(map(str, range(1000))), matrix, {}, np.float32)
    store = FeatureStore.open(tmp_path)
    np.testing.assert_array_equal(store.vectors(range(1000)), matrix.astype(np.float32))


@pytest.mark.parametrize(
    ("backbone", "ids", "matrix", "message"),
    [
        ("a/b", ["a"], np.ones((1, 2)), "'a/b' cannot be the name of a backbone"),
        ("", ["a"], np.ones((1, 2)), "'' cannot be the name of a backbone"),
        ("net", ["a"], np.ones((2, 2)), "shape (2, 2), expected a row for each of 1 images"),
        ("net", ["a"], np.ones(1), "shape (1,), expected a row for each of 1 images"),
        ("net", ["b", "a", "b"], np.ones((3, 2)), "two rows belong to the image id 'b'"),
        ("net", ["a", "b"], np.array([[0], [1e6]]), "image 'b' holds NaN, infinity or a number"),
        ("net", ["a", "b"], np.array([[np.nan], [0]]), "image 'a' holds NaN, infinity or a"),
        ("net", ["\ud800"], np.ones((1, 2)), "an id or the manifest cannot be JSON"),
    ],
)
def test_what_would_not_open_is_not_written(tmp_path, backbone, ids, matrix, message):
    with pytest.raises(FeatureError) as raised:
        write_feature_store(tmp_path, backbone, ids, matrix, {})
    assert message in str(raised.value)
    assert names(tmp_path) == []


def test_a_store_whose_writing_was_stopped_between_two_files_does_not_open(tmp_path, monkeypatch):
    write_feature_store(tmp_path, "net", IDS, MATRIX, {})

    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_sync_folder", stop)
    with pytest.raises(KeyboardInterrupt):
        write_feature_store(tmp_path, "net", IDS[::-1], MATRIX[::-1], {})
    assert names(tmp_path) == ["manifest.json", "net.npy"]
    assert "id2row.json is missing" in message_of(tmp_path)


def test_a_full_disk_leaves_the_old_store(tmp_path):
    write_feature_store(tmp_path, "net", IDS, MATRIX, {})
    bigger = np.ones((3000, 3))
    with (
        largest_file(4000),
        pytest.raises(SightlineError, match="cannot be written: File too large"),
    ):
        write_feature_store(tmp_path, "net", list(map(str, range(3000))), bigger, {})
    assert names(tmp_path) == ["id2row.json", "manifest.json", "net.npy"]
    store = FeatureStore.open(tmp_path)
    np.testing.assert_array_equal(store.vectors(store.rows(IDS)), MATRIX.astype(np.float16))


@pytest.mark.parametrize(
    ("corpus", "images"), [("coco", 28_983), ("openstax", 5_044), ("guides", 2_687)]
)
def test_real_stores(shared_data, corpus, images):
    store = FeatureStore.open(shared_data / corpus / "features")
    assert (store.backbone, len(store), store.dimension) == ("efficientnet-lite0", images, 1280)
    assert store.non_finite(np.arange(images)).tolist() == []
    rows = store.rows([f"images/{name}" for name in names(shared_data / corpus / "images")])
    assert len(rows) > 100
    assert (rows >= 0).all()
