"""Waiting for a page in a browser, and reading off it what the tests of several pages ask."""

import time


def wait_for(page, condition: str, argument=None) -> None:
    """Until a function of the page gives true; the page's own policy forbids ``wait_for_function`` to ask twice."""
    last = time.monotonic() + 30
    while not page.evaluate(condition, argument):
        assert time.monotonic() < last, f"never true in the page: {condition} ({argument})"
        page.wait_for_timeout(10)


def until(page, wanted: str, part: str = "stage") -> None:
    """Until a part shows what is wanted: section, layer, head and so on."""
    wait_for(page, "([part, wanted]) => document.getElementById(part).dataset.shown === wanted", [part, wanted])


def said(page, words: str) -> None:
    """Until the caption says these words."""
    wait_for(page, "words => document.getElementById('caption').textContent.includes(words)", words)


def drawn(page) -> None:
    """Until what was asked for in this frame is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown(page) -> str:
    return page.locator("#stage").get_attribute("data-shown")


def tab_to(page, part: str) -> None:
    """Presses Tab until a part has the focus."""
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == part:
            return
    raise AssertionError(f"Tab never came to {part}")


def nameless(page) -> list[str]:
    """Controls and drawings that a screen reader could not name."""
    return page.evaluate("""() =>
        [...document.querySelectorAll("button, select, input, [role], canvas:not([aria-hidden])")]
        .filter(e => !e.closest("[hidden]") && !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
            || e.textContent.trim() || e.title || e.labels?.length || e.closest("button")?.getAttribute("aria-label")))
        .map(e => e.outerHTML.slice(0, 80))""")


def brightness(page) -> int:
    """Of the page's background: the sum of its red, green and blue."""
    return sum(map(int, page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(",")))


def fits_when_narrow(page) -> None:
    """Until nothing of the page hangs over the side of a narrow window."""
    page.set_viewport_size({"width": 380, "height": 800})
    wait_for(page, "() => document.documentElement.scrollWidth <= 380")
