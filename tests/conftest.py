"""What several test files share."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_server import share_programs
from script_watch import CHROMIUM

#: Files of a minute or more. They go first, so that none of them is left for the end of a run.
LONG = {f"test_{name}" for name in (
    "cli", "disk_packing", "distributed", "finetuning", "hostile_documents", "readme", "report",
    "reproduction", "training", "tutorials",
)}  # fmt: skip
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Have one server of commands for all processes of a run."""
    in_several = getattr(config.option, "numprocesses", None)  # not set in the processes themselves
    if in_several and hasattr(os, "fork"):
        share_programs()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files; the tests of one stay in their order."""
    items.sort(key=lambda item: item.path.stem not in LONG)


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Give a real browser; skips the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
