import io
import pickle

import numpy as np
import pytest
from test_efficientnet_lite import installed

from sightline.efficientnet_lite import VARIANTS
from sightline.torch_files import read_torch_weights


@pytest.mark.parametrize("name", list(VARIANTS))
def test_weights_are_those_that_torch_reads(name):
    torch = pytest.importorskip("torch")
    data = installed(name)
    expected = torch.load(io.BytesIO(data), weights_only=True)
    found = read_torch_weights(data)
    assert list(found) == list(expected)
    for key, values in expected.items():
        assert found[key].dtype == values.numpy().dtype
        assert np.array_equal(found[key], values.numpy()), key


def test_nothing_of_a_file_is_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    data = b"".join(pickle.dumps(value, protocol=2) for value in (1, 2, 3, Trap(), []))
    read_or_fail(data)
    assert not (tmp_path / "made").exists()
    with pytest.raises(ValueError, match="instruction BINFLOAT"):
        read_torch_weights(pickle.dumps(0.5, protocol=2))


def read_or_fail(data):
    try:
        read_torch_weights(data)
    except (AttributeError, ValueError):
        return
