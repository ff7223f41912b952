"""The page of a caption in a browser: pointing at a word warms the picture, keys and play go through them."""

from functools import partial

import pytest
from browsing import wait_for

from captioners import captioner, pixels
from qkv.look.told import look_at_picture
from qkv.look.told_page import write_page

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def looks():
    teller = captioner("caption-transformer")
    said = look_at_picture(captioner(), pixels(1)[0], caption="a red circle above a </script> square", faithful=True)
    return [said, look_at_picture(teller, pixels(1)[0], caption="파란 원")]


@pytest.fixture
def opened(opened_page, looks):
    """The page of two looks, with its picture."""
    page = opened_page(partial(write_page, looks), (1100, 800))
    has_picture(page)
    return page


def has_picture(page) -> None:
    wait_for(page, "() => image.complete && image.naturalWidth > 0")


def light(page) -> float:
    """Mean of the red of the picture as it is drawn."""
    return page.evaluate("""() => {
        const c = document.getElementById('picture'), copy = new OffscreenCanvas(c.width, c.height);
        const context = copy.getContext('2d', { willReadFrequently: true });
        context.drawImage(c, 0, 0);
        const red = context.getImageData(0, 0, c.width, c.height).data.filter((_, i) => i % 4 === 0);
        return red.reduce((sum, value) => sum + value, 0) / red.length;
    }""")


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
    wait_for(opened, "was => document.querySelector('#caption .now').textContent !== was", first)
    opened.click("#play")
    assert opened.get_attribute("#play", "aria-pressed") == "false"


def test_another_look_has_layers_and_heads(opened):
    opened.select_option("#example", "1")
    has_picture(opened)
    assert opened.locator("#caption span").first.inner_text() == "파란"
    assert opened.locator("#layer option").count() == 2 and opened.locator("#head option").count() == 3
    opened.locator("#caption span").first.hover()
    mean = light(opened)
    opened.select_option("#head", "1")
    assert light(opened) != mean
