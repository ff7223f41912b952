"""The page of a caption in a browser: pointing at a word warms the picture, keys and play go through them."""

import shutil

import pytest

from captioners import captioner, pixels
from qkv.look.told import look_at_picture
from qkv.look.told_page import write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """The page of two looks, opened; at the end nothing may have gone wrong."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no browser: playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    file = tmp_path_factory.mktemp("page") / "look.html"
    teller = captioner("caption-transformer")
    looks = [look_at_picture(captioner(), pixels(1)[0], caption="a red circle above a </script> square", faithful=True)]
    write_page([*looks, look_at_picture(teller, pixels(1)[0], caption="파란 원")], file)
    wrong, asked = [], []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1100, "height": 800})
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]")
        page.wait_for_function("image.complete && image.naturalWidth > 0")
        yield page
        browser.close()
    assert wrong == []
    assert {url for url in asked if not url.startswith("data:")} == {file.as_uri()}


def light(page) -> float:
    """Mean brightness of the picture as it is drawn."""
    return page.evaluate(
        "() => { const c = document.getElementById('picture'), d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; let s = 0; for (let i = 0; i < d.length; i += 4) s += d[i];"
        " return s / d.length * 4; }"
    )


def test_pointing_at_a_word_shows_its_heat_and_keys_go_on(opened):
    bright = light(opened)
    words = opened.locator("#caption span")
    assert words.nth(1).inner_text() == "red" and words.nth(5).inner_text() == "</script>"
    words.nth(1).hover()
    assert light(opened) < 0.9 * bright
    assert "β" in opened.inner_text("#about") and "chance of the word" in opened.inner_text("#about")
    assert opened.locator("#falls polyline").count() == 2
    opened.locator("#caption").press("ArrowRight")
    assert opened.locator("#caption .now").inner_text() == "circle"
    smooth = light(opened)
    opened.locator("#smooth").uncheck()
    assert light(opened) != smooth


def test_it_plays(opened):
    opened.click("#play")
    first = opened.locator("#caption .now").inner_text()
    opened.wait_for_function("was => document.querySelector('#caption .now').textContent !== was", arg=first)
    opened.click("#play")
    assert opened.get_attribute("#play", "aria-pressed") == "false"


def test_another_look_has_layers_and_heads(opened):
    opened.select_option("#example", "1")
    opened.wait_for_function("image.complete && image.naturalWidth > 0")
    assert opened.locator("#caption span").first.inner_text() == "파란"
    assert opened.locator("#layer option").count() == 2 and opened.locator("#head option").count() == 3
    opened.locator("#caption span").first.hover()
    mean = light(opened)
    opened.select_option("#head", "1")
    assert light(opened) != mean
