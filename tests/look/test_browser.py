"""The page in a browser: pointing, keys, light and dark, 512 tokens; nothing is fetched and nothing goes wrong."""

import time
from functools import partial

import pytest
from browsing import brightness, drawn, fits_when_narrow, nameless, said, shown, tab_to, until, wait_for
from traces import a_trace, korean_english, long_trace, tokens

from qkv.axis import Tokens
from qkv.look.alignment import Reader
from qkv.look.page import write_page
from qkv.look.record import Map, Trace

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def show(opened_page):
    return lambda traces, *size, **context: opened_page(partial(write_page, traces), *size, **context)


def looked_at(page, part: str = "forward") -> list[tuple[str, float]]:
    drawn(page)
    rows = page.locator(f"#{part} li").all()
    return [(row.locator("span").first.inner_text(), float(row.locator("b").inner_text())) for row in rows]


def sharp(**notes) -> Trace:
    """A translation whose last cross-attention layer, head 1, is known to the digit."""
    trace = korean_english(**notes)
    weights = trace["decoder.blocks.1.cross"][0].weights
    weights[1] = 0
    # columns 나 는 학생 이다 </s>; rows <s> I am a stud ent
    weights[1, [0, 1, 2, 3, 4, 5], [4, 0, 3, 4, 2, 3]] = 1.0
    weights[1, 5] = weights[1].new_tensor([0, 0, 0.5, 0.3, 0.2])
    return trace


def test_it_opens_on_the_last_cross_attention_layer(show):
    page = show(sharp())
    assert shown(page) == "cross decoder.blocks.1.cross mean lines"
    assert page.title() == "runs/ko-en · what it looked at"
    assert "score -0.310" in page.locator("#texts").inner_text()
    assert page.locator("#texts .unit").all_inner_texts() == [
        "나는",
        "학생이다",
        "</s>",
        "<s>",
        "I",
        "am",
        "a",
        "student",
    ]
    assert page.locator("#texts .unit.unsure").all_inner_texts() == ["a"]


def test_pointing_at_a_word_shows_where_it_looked(show):
    page = show(sharp())
    page.select_option("#head", label="1")
    until(page, "cross decoder.blocks.1.cross 1 lines")
    page.locator("#left .unit", has_text="student").hover()
    # the mean of the rows of "stud" and "ent"; the key pieces added up
    assert looked_at(page) == [("학생이다", 0.9), ("</s>", 0.1)]
    assert "“student” as its input, the decoder looked most at “학생이다”" in page.locator("#caption").inner_text()
    page.locator("#texts .unit", has_text="나는").hover()
    assert looked_at(page, "backward") == [("I", 1.0)]
    assert looked_at(page) == []
    page.mouse.move(1, 1)
    assert looked_at(page, "backward") == []


def test_pieces_and_predictions(show):
    page = show(sharp())
    page.select_option("#head", label="1")
    page.click("#unit >> text=pieces")
    page.locator("#left .unit", has_text="ent").hover()
    assert looked_at(page) == [("학생", 0.5), ("이다", 0.3), ("</s>", 0.2)]
    page.click("#step >> text=as prediction")
    page.locator("#left .unit", has_text="ent").hover()
    assert looked_at(page) == [("학생", 1.0)]  # the row of "stud"
    assert page.locator("#left .unit").all_inner_texts() == ["I", "am", "a", "stud", "ent", "</s>"]
    page.click("#unit >> text=words")
    page.locator("#left .unit", has_text="I").first.hover()
    assert looked_at(page) == [("</s>", 1.0)]  # the row of <s>


def test_layer_and_head_by_mouse(show):
    page = show(sharp())
    page.get_by_role("button", name="Layer 1, head 2").click()
    until(page, "cross decoder.blocks.0.cross 2 lines")
    page.locator("#figures tbody tr").first.click()
    until(page, "cross decoder.blocks.0.cross 0 lines")
    page.get_by_role("tab", name="Encoder", exact=True).click()
    until(page, "encoder encoder.blocks.0.attention 0 lines")
    assert page.locator("#figures th").all_inner_texts() == ["head", "entropy, nats", "distance, positions"]
    page.click("#view >> text=grid")
    until(page, "encoder encoder.blocks.0.attention 0 grid")
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)
    said(page, "→")


def test_everything_by_keyboard(show):
    page = show(sharp())
    tab_to(page, "stage")
    page.keyboard.press("Shift+ArrowLeft")
    until(page, "cross decoder.blocks.1.cross 2 lines")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    until(page, "cross decoder.blocks.0.cross 1 lines")
    page.keyboard.press("Shift+ArrowDown")
    until(page, "cross decoder.blocks.1.cross 1 lines")
    page.keyboard.press("ArrowDown")
    assert looked_at(page) == [("</s>", 1.0)]  # the start mark
    page.keyboard.press("ArrowDown")
    assert looked_at(page) == [("나는", 1.0)]
    page.keyboard.press("ArrowRight")
    assert looked_at(page, "backward")[0][0] in ("am", "student")  # the same place on the other side
    page.keyboard.press("Home")
    assert looked_at(page, "backward") == [("I", 1.0)]
    page.keyboard.press("Enter")  # hold it
    page.locator("#left .unit", has_text="student").hover()
    assert looked_at(page, "backward") == [("I", 1.0)]
    page.keyboard.press("Escape")
    assert looked_at(page, "backward") == []
    page.locator("#heads button[aria-pressed=true]").focus()
    page.keyboard.press("ArrowRight")
    until(page, "cross decoder.blocks.1.cross 2 lines")
    page.keyboard.press("ArrowUp")
    until(page, "cross decoder.blocks.0.cross 2 lines")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.locator("#sections [aria-selected=true]").focus()
    page.keyboard.press("ArrowLeft")
    until(page, "decoder decoder.blocks.0.attention 2 lines")
    page.locator("#view [aria-checked=true]").focus()
    page.keyboard.press("ArrowRight")
    until(page, "decoder decoder.blocks.0.attention 2 grid")
    page.locator("#stage").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    said(page, "→")


def test_every_part_has_a_name(show):
    page = show(sharp())
    assert nameless(page) == []
    assert page.locator("#caption").get_attribute("aria-live") == "polite"


def test_an_alignment_opens_as_it_was_read(show):
    trace = sharp()
    note = {**Reader("decoder.blocks.1.cross", (1,), "unshifted").note(trace), "sure": [[1, 3]], "possible": [[0, 0]]}
    page = show(sharp(alignment=note, faithfulness={"sentence": "better than chance here."}))
    assert page.locator("#step [aria-checked=true]").inner_text() == "as prediction"
    assert "better than chance here." in page.locator("#texts").inner_text()
    page.get_by_role("tab", name="Alignment").click()
    until(page, "alignment decoder.blocks.1.cross mean lines")
    page.locator("#left .unit", has_text="am").hover()
    wait_for(page, "() => document.getElementById('caption').textContent === '“am” is linked to “나는”.'")
    assert "decoder.blocks.1.cross, heads 1" in page.locator("#layer-name").inner_text()


def test_texts_can_be_chosen(show):
    other = a_trace(tokens(["둘"], end=True), tokens(["two"], start=True), layers=1, heads=2)
    page = show([sharp(), other])
    page.get_by_role("tab", name="Rollout").click()
    page.locator("#next").click()
    wait_for(page, "() => document.querySelector('#texts').innerText.includes('둘')")
    assert shown(page).startswith("rollout encoder.blocks.rollout") or shown(page).startswith("rollout decoder")
    assert page.locator("#next").is_disabled()
    page.select_option("#example", index=0)
    wait_for(page, "() => document.querySelector('#texts').innerText.includes('학생이다')")


def test_light_dark_and_narrow(show):
    page = show(sharp(), color_scheme="dark")
    dark = brightness(page)
    page.locator("#theme").click()
    assert dark < 150 < 700 < brightness(page)
    page.locator("#theme").click()
    assert brightness(page) == dark
    fits_when_narrow(page)


def test_positions_have_a_grid(show):
    axis = Tokens(tuple("0123"), ((0, 0),) * 4, "")
    trace = sharp()
    similar = (trace["encoder.blocks.0.attention"][0].weights[:1, :4, :4] - 0.3) * 2
    map = Map("encoder.positions", "position", similar, axis, axis, (0,), (0, 1, 2, 3))
    page = show(Trace({**trace.maps, map.name: [map]}, trace.notes))
    page.get_by_role("tab", name="Positions").click()
    until(page, "position encoder.positions mean grid")
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    said(page, "→")


HOSTILE = [["</script><script>document.title='bad'</script>"], ["<img src=x onerror=document.title='bad'>"], ["<!--"]]


def test_hostile_text_stays_text(show):
    page = show(a_trace(tokens(*HOSTILE, end=True), tokens(*HOSTILE, start=True), run="runs/a"))
    assert page.title() == "runs/a · what it looked at"
    assert page.locator("img").count() == 0
    assert HOSTILE[0][0] in page.locator("#texts").inner_text()


def test_a_notebook_shows_the_same(browser, tmp_path):
    (tmp_path / "cell.html").write_text(f"<!doctype html>{sharp()._repr_html_()}", encoding="utf-8")
    page, wrong = browser.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.goto((tmp_path / "cell.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("body[data-ready]").wait_for()
    assert frame.locator("#stage").get_attribute("data-shown") == "cross decoder.blocks.1.cross mean lines"
    page.close()
    assert wrong == []


def test_512_tokens_answer_within_a_second(show, tmp_path):
    page = show(long_trace(512, layers=6, heads=8))
    size = (tmp_path / "look.html").stat().st_size
    assert size < 26e6
    assert shown(page).endswith("mean grid")
    assert page.locator("body *").count() < 6000  # no node for a cell

    def timed(act) -> float:
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    def choose(layer: int, head: str):
        page.get_by_role("button", name=f"Layer {layer}, {head}").click()
        until(page, f"cross decoder.blocks.{layer - 1}.cross {head.split()[-1]} grid")

    def section(name: str, id: str):
        page.get_by_role("tab", name=name, exact=True).click()
        wait_for(page, f"() => document.getElementById('stage').dataset.shown.startsWith('{id}')")

    def point():
        before = page.locator("#caption").inner_text()
        box = page.locator("#canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 150 if before.startswith("Point") else box["y"] + 90)
        wait_for(page, "before => document.getElementById('caption').textContent !== before", before)

    times = {
        "head": timed(lambda: choose(6, "head 3")),
        "layer": timed(lambda: choose(2, "head 5")),
        "point": timed(point),
        "pieces": timed(lambda: (page.click("#unit >> text=pieces"), point())),
        "encoder": timed(lambda: section("Encoder", "encoder")),
        "rollout": timed(lambda: section("Rollout", "rollout")),
        "lines": timed(lambda: (page.click("#view >> text=lines"), page.locator("#left .unit").nth(5).wait_for())),
        "word": timed(
            lambda: (page.locator("#left .unit").nth(5).hover(), page.locator("#forward li").first.wait_for())
        ),
    }
    print(f"{size / 1e6:.1f} MB", {name: f"{seconds:.2f} s" for name, seconds in times.items()})
    assert max(times.values()) < 1.0, times
