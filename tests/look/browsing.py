"""Waiting for a page in a browser."""

import time


def wait_for(page, condition: str, argument=None) -> None:
    """Until a function of the page gives true; the page's own policy forbids ``wait_for_function`` to ask twice."""
    last = time.monotonic() + 30
    while not page.evaluate(condition, argument):
        assert time.monotonic() < last, f"never true in the page: {condition} ({argument})"
        page.wait_for_timeout(10)


def until(page, wanted: str) -> None:
    wait_for(page, "wanted => document.getElementById('stage').dataset.shown === wanted", wanted)
