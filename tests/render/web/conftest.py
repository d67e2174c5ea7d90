"""A real browser without a network, and pages that must ask for nothing and complain of nothing.

Where there is none the tests are skipped and say so; with ATTNSCOPE_BROWSER=required they fail then. The
browser is the distribution's own (`apt-get install chromium`), driven by playwright from the `dev` extra.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
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
AT_ONCE = 8  # pages that stay open; all of them take four gigabytes, and a browser dies where there is less
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


class Shown:
    """Pages in one context of the browser, offline; the last few results stay open and are looked at again.

    Any request, error or line in the console of a page fails the test that it comes up in.
    """

    def __init__(self, browser: Any, folder: Path) -> None:
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 800}, offline=True, accept_downloads=True, color_scheme="light"
        )
        self.context.set_default_timeout(6_000)
        self.folder = folder
        self.open: dict[int, tuple[Any, Any, list[str]]] = {}  # the one that was looked at last stands last
        self.files = count()

    def page(self, result: Result | bytes) -> tuple[Any, list[str]]:
        """The page of a result, and what it complained of."""
        if id(result) in self.open:
            self.open[id(result)] = self.open.pop(id(result))
        else:
            file = self.folder / f"{next(self.files)}.html"
            file.write_bytes(result if isinstance(result, bytes) else content(result, ".html"))
            self.open[id(result)] = result, self._listened(file), self.heard
            if len(self.open) > AT_ONCE:
                _, oldest, _ = self.open.pop(next(iter(self.open)))
                oldest.close()
        _, view, heard = self.open[id(result)]
        return view, heard

    def _listened(self, file: Path) -> Any:
        heard: list[str] = []
        self.heard = heard
        view, own = self.context.new_page(), file.as_uri()
        view.on("console", lambda line: heard.append(f"console: {line.text}"))
        view.on("pageerror", lambda error: heard.append(f"error: {error}"))
        view.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        asked = lambda each: each.url.split("#")[0] != own and not each.url.startswith("data:")  # noqa: E731
        view.on("request", lambda each: heard.append(f"request: {each.url[:80]}") if asked(each) else None)
        view.goto(own)
        view.wait_for_selector(DRAWN, timeout=10_000)
        return view


GO = """hash => {
  delete document.body.dataset.thumbnails;
  if (location.hash === hash) dispatchEvent(new HashChangeEvent('hashchange'));
  else location.hash = hash;
}"""


def _go(view: Any, hash_: str) -> None:
    view.evaluate(GO, hash_)
    view.wait_for_selector(DRAWN, timeout=10_000)


@pytest.fixture(scope="session")
def go() -> Callable[[Any, str], None]:
    """Another address of a page that is open."""
    return _go


@pytest.fixture(scope="session")
def shown(browser: Any, tmp_path_factory: Any) -> Iterator[Shown]:
    every = Shown(browser, tmp_path_factory.mktemp("pages"))
    yield every
    every.context.close()


@pytest.fixture
def opened(shown: Shown) -> Open:
    """The page of a result, open at an address."""

    @contextmanager
    def of(result: Result | bytes, hash_: str = "", scheme: str = "light") -> Iterator[Any]:
        view, heard = shown.page(result)
        view.emulate_media(color_scheme=scheme, media="screen")
        _go(view, hash_)
        yield view
        assert heard == []

    return of
