"""A browser, for the tests of the pages."""

import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="no browser: playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opened_page(browser, tmp_path):
    """Opens a page of ours; at the end nothing may have been asked for, nor gone wrong."""
    wrong, asked, opened = [], [], []

    def open_page(write, size=(1280, 1100), **context):
        write(tmp_path / "look.html")
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, **context)
        opened.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "look.html").as_uri())
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for page in opened:
        page.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith("data:")] == [(tmp_path / "look.html").as_uri()] * len(opened)
