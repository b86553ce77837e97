"""What several test files share."""

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the measuring data that lies beside the checkout; skips the test where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the measuring data (../shared/data beside the checkout) is not here")
    return SHARED_DATA


@pytest.fixture(scope="session")
def textbooks() -> Path:
    """Give the bundled corpus of textbook sections."""
    return Path(__file__).resolve().parents[1] / "examples" / "textbooks"
