"""The page of a film in a browser: pointing, layers, heads, keys; nothing is fetched and nothing goes wrong."""

from functools import partial

import browsing
import pytest
from test_film import NASTY, a_film

pytestmark = pytest.mark.timeout(300)


until = partial(browsing.until, part="strip")


@pytest.fixture
def show(opened_page):
    return lambda trace: opened_page(trace.save, (1280, 900))


def weights(page) -> list[str]:
    return page.locator("#strip b").all_inner_texts()


def test_layers_heads_and_frames_that_look(show):
    page = show(a_film(name=NASTY))
    until(page, "rollout mean pool")
    page.select_option("#layer", label="block 1")
    until(page, "1 mean pool")
    assert (
        page.title() == f"{NASTY.rpartition('/')[2]} · what it looked at" and page.locator("h1").inner_text() == "wild"
    )
    assert weights(page) == ["0.10", "0.10", "0.60", "0.10"]
    assert page.locator("#strip .marked").count() == 1 and "marked: 1 s" in page.locator("#spans").inner_text()
    assert "67 % of the weight lies on marked frames, 25 % by chance" in page.locator("#caption").inner_text()
    page.select_option("#head", label="1")
    until(page, "1 1 pool")
    assert weights(page) == ["0.00", "0.00", "1.00", "0.00"]
    page.select_option("#layer", label="block 0")
    until(page, "0 1 pool")
    assert weights(page) == ["0.20"] * 4
    page.select_option("#layer", label="rollout")
    until(page, "rollout mean pool")
    assert not page.locator("#head-field").is_visible()
    page.locator("#every button").nth(3).click()
    until(page, "1 1 pool")
    page.locator("#strip button").nth(1).click()
    until(page, "1 1 1")
    assert weights(page) == ["0.20"] * 4 and "frame 1 gives" in page.locator("#caption").inner_text()
    page.locator("#strip button").nth(3).hover()
    browsing.said(page, "to frame 3 (1.5 s)")


def test_keys_and_both_themes(show):
    page = show(a_film(20))
    page.select_option("#layer", label="block 1")
    page.locator("#strip button").nth(0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    until(page, "1 mean 1")
    page.keyboard.press("Shift+ArrowUp")
    until(page, "0 mean 1")
    page.keyboard.press("Shift+ArrowRight")
    until(page, "0 0 1")
    page.keyboard.press("Escape")
    until(page, "0 0 pool")
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"


def test_a_number_and_a_model_without_a_class_token(show):
    trace = a_film(prefix=())
    trace.notes["answer"] = {"clip": "c", "label": 3.5, "times": [0, 0.5, 1, 1.5]}
    page = show(trace)
    until(page, "rollout mean pool")
    assert (
        page.locator("h1").inner_text() == "3.5"
        and page.locator("#query button").first.inner_text() == "mean of frames"
    )
    assert page.locator("#classes li").count() == 0 and page.locator("#strip .marked").count() == 0
