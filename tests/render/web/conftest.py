"""A real browser without a network, and pages that must ask for nothing and complain of nothing.

Where there is none the tests are skipped and say so; with ATTNSCOPE_BROWSER=required they fail then. The
browser is the distribution's own (`apt-get install chromium`), driven by playwright from the `dev` extra.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from attnscope.render.saving import content
from attnscope.results import Result

PLACES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-color-profile=srgb",
)  # fmt: skip
DRAWN = "body[data-thumbnails]"
Open = Callable[..., Any]


def _without(reason: str) -> None:
    if os.environ.get("ATTNSCOPE_BROWSER") == "required":
        pytest.fail(f"{reason}, and ATTNSCOPE_BROWSER=required")
    pytest.skip(f"{reason}: the page is not tested")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of the page."""
    found = next(filter(None, map(shutil.which, PLACES)), None)
    if found is None:
        _without(f"no browser here ({', '.join(PLACES)})")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without("no playwright here (pip install 'attnscope[dev]')")
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=list(QUIET))
        yield running
        running.close()


@contextmanager
def shown(browser: Any, file: Path, hash_: str = "", **settings: Any) -> Iterator[Any]:
    """A file in the browser, offline. Any request, error or line in its console fails the test."""
    settings = {
        "viewport": {"width": 1280, "height": 800},
        "offline": True,
        "accept_downloads": True,
    } | settings
    context = browser.new_context(**settings)
    heard: list[str] = []
    view = context.new_page()
    view.set_default_timeout(6_000)
    view.on("console", lambda line: heard.append(f"console: {line.text}"))
    view.on("pageerror", lambda error: heard.append(f"error: {error}"))
    view.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    own = file.as_uri()
    asked = lambda each: each.url.split("#")[0] != own and not each.url.startswith("data:")  # noqa: E731
    view.on("request", lambda each: heard.append(f"request: {each.url[:80]}") if asked(each) else None)
    try:
        view.goto(own + hash_)
        view.wait_for_selector(DRAWN, timeout=10_000)
        yield view
    finally:
        context.close()
    assert heard == []


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Open:
    """The page of a result, open."""

    @contextmanager
    def of(result: Result | bytes, hash_: str = "", **settings: Any) -> Iterator[Any]:
        file = tmp_path / "page.html"
        file.write_bytes(result if isinstance(result, bytes) else content(result, ".html"))
        with shown(browser, file, hash_, **settings) as view:
            yield view

    return of
