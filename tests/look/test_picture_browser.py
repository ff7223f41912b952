"""The page of a picture in a browser: pointing, classes, windows, keys; nothing is fetched and nothing goes wrong."""

import base64
import io

import numpy as np
import pytest
import torch
from browsing import brightness, drawn, fits_when_narrow, nameless, said, shown, tab_to, until, wait_for
from looked import opened, pixels
from PIL import Image

from qkv.look.pictures import look_at
from qkv.look.record import Trace

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def show(opened_page):
    return lambda trace, *size, **context: opened_page(trace.save, *size, **context)


@pytest.fixture(scope="module")
def vit() -> Trace:
    """Of 4 x 6 patches; in the last layer, head 2, every patch looks at the next one only, and CLS at the tenth."""
    seen = look_at(opened("vit", registers=1), pixels(), faithful=True, samples=4)
    weights = seen["blocks.1.attention"][0].weights
    weights[2] = 0
    weights[2, range(2, 25), range(3, 26)] = 1.0
    weights[2, 25, 2] = 1.0
    weights[2, 0, 11], weights[2, 0, 1] = 0.75, 0.25
    return seen


def over(page, row: int, column: int, rows: int = 4, columns: int = 6) -> tuple[float, float]:
    """The middle of a cell of the picture, on the screen."""
    box = page.locator("#canvas").bounding_box()
    return box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows


def test_it_opens_on_what_the_class_token_looked_at(show, vit):
    page = show(vit)
    assert shown(page) == "attention blocks.1.attention mean [CLS]"
    assert page.locator("#query button").all_inner_texts() == ["[CLS]", "[REG 0]", "all cells"]
    assert page.locator("#answer button, #answer div").count() == 3
    assert "chance here" in page.locator("#sentence").inner_text()
    assert page.locator("#sections button").all_inner_texts() == ["Attention", "Rollout", "Classes", "Positions"]
    assert "pixels" in page.locator("#figures").inner_text()


def test_pointing_at_a_patch_shows_where_it_looked(show, vit):
    page = show(vit)
    page.select_option("#head", label="2")
    until(page, "attention blocks.1.attention 2 [CLS]")
    said(page, "[CLS] looked most at row 2, column 4 (0.75).")
    assert page.locator("#apart").inner_text() == "In the picture 0.75; apart from it: [CLS] 0.00, [REG 0] 0.25."
    page.mouse.move(*over(page, 1, 5))
    until(page, "attention blocks.1.attention 2 1,5")
    said(page, "The cell in row 2, column 6 looked most at row 3, column 1 (1.00).")
    page.mouse.click(*over(page, 1, 5))
    page.mouse.move(*over(page, 0, 0))  # it is held
    said(page, "The cell in row 2, column 6")
    page.mouse.click(*over(page, 0, 0))
    until(page, "attention blocks.1.attention 2 0,0")
    page.get_by_role("radio", name="[REG 0]").click()
    until(page, "attention blocks.1.attention 2 [REG 0]")
    page.get_by_role("radio", name="all cells").click()
    until(page, "attention blocks.1.attention 2 all")
    page.get_by_role("button", name="Layer 1, head 3").click()
    until(page, "attention blocks.0.attention 3 all")


def pixel(page, row: int, column: int) -> list[int]:
    drawn(page)
    return page.evaluate(
        """([x, y]) => {
            const c = document.getElementById('canvas'), copy = new OffscreenCanvas(1, 1);
            const context = copy.getContext('2d', { willReadFrequently: true });
            context.drawImage(c, -Math.floor(c.width * x), -Math.floor(c.height * y));
            return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }""",
        [(column + 0.5) / 6, (row + 0.5) / 4],
    )


def test_opacity_and_smoothness_change_what_lies_over_the_picture(show, vit):
    page = show(vit)
    page.select_option("#head", label="2")
    until(page, "attention blocks.1.attention 2 [CLS]")
    page.locator("#opacity").fill("0")
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(vit.notes["picture"]["png"])))).astype(int)
    place = (int(len(picture) * 1.5 / 4), int(picture.shape[1] * 3.5 / 6))
    around = picture[place[0] - 1 : place[0] + 2, place[1] - 1 : place[1] + 2].reshape(-1, 3)
    bare = np.array(pixel(page, 1, 3))
    assert (around.min(0) - 3 <= bare).all() and (bare <= around.max(0) + 3).all()
    page.locator("#opacity").fill("100")
    assert np.abs(np.array(pixel(page, 1, 3)) - [252, 253, 191]).max() < 3  # the brightest colour
    assert max(pixel(page, 0, 0)) < 6  # the darkest
    page.get_by_role("radio", name="smooth").click()
    wait_for(page, "() => document.querySelector('#smooth [aria-checked=true]').textContent === 'smooth'")
    box = page.locator("#canvas").bounding_box()
    assert box["width"] / box["height"] == pytest.approx(1.5, abs=0.01)


def test_classes_have_their_own_maps(show, vit):
    page = show(vit)
    page.locator("#answer button").nth(1).click()
    name = page.locator("#answer button").nth(1).locator("span").first.inner_text()
    until(page, f"classes gradient-rollout mean {name}")
    assert page.locator("#answer button").nth(1).get_attribute("aria-pressed") == "true"
    page.select_option("#layer", label="grad-cam")
    until(page, f"classes grad-cam mean {name}")
    page.mouse.move(*over(page, 2, 1))
    said(page, f"“{name}”, row 3, column 2: ")
    page.locator("#query [aria-checked=true]").focus()
    page.keyboard.press("ArrowLeft")
    wait_for(page, "old => !document.getElementById('stage').dataset.shown.endsWith(old)", name)


def test_rollout_positions_and_faithfulness(show, vit):
    page = show(vit)
    page.get_by_role("tab", name="Rollout").click()
    until(page, "rollout rollout mean answer")
    page.select_option("#layer", index=1)
    until(page, "rollout blocks.1.attention.rollout mean [CLS]")
    page.get_by_role("tab", name="Positions").click()
    until(page, "position patches.position mean 2,3")
    said(page, "The cell in row 3, column 4 is most like row 3, column 4 (1.00).")
    page.get_by_role("radio", name="map of maps").click()
    wait_for(page, "() => document.querySelector('#view [aria-checked=true]').textContent === 'map of maps'")
    page.mouse.move(*over(page, 0, 1))
    until(page, "position patches.position mean 0,1")
    assert page.locator("#curves svg").count() == 2
    assert page.locator("#areas tbody tr").count() == 6
    page.get_by_role("radio", name="blur").click()
    assert page.locator("#fill [aria-checked=true]").inner_text() == "blur"


def test_everything_by_keyboard(show, vit):
    page = show(vit)
    tab_to(page, "stage")
    page.keyboard.press("ArrowRight")
    until(page, "attention blocks.1.attention mean 2,3")  # the middle first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    until(page, "attention blocks.1.attention mean 1,4")
    page.keyboard.press("Shift+ArrowLeft")
    until(page, "attention blocks.1.attention 3 1,4")
    page.keyboard.press("Shift+ArrowUp")
    until(page, "attention blocks.0.attention 3 1,4")
    page.keyboard.press("Escape")
    until(page, "attention blocks.0.attention 3 [CLS]")
    page.locator("#heads button[aria-pressed=true]").focus()
    page.keyboard.press("ArrowDown")
    until(page, "attention blocks.1.attention 3 [CLS]")
    page.locator("#sections [aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    until(page, "rollout rollout mean answer")
    assert nameless(page) == []


def test_a_swin_shows_its_windows(show):
    seen = look_at(opened("swin"), pixels())  # 16 x 24 cells in windows of 4, then 8 x 12
    shifted = seen["stages.0.blocks.1.attention"][0]
    shifted.weights[1, 0] = 0
    corner = shifted.where[(shifted.where == 0).any(1)][0].tolist()
    assert set(corner) == {row * 24 + column for row in (0, 1, 14, 15) for column in (0, 1, 22, 23)}
    shifted.weights[1, 0, corner.index(25)] = 1.0
    page = show(seen)
    until(page, "attention stages.1.blocks.1.attention mean all")
    assert page.locator("#layer option").all_inner_texts() == [
        "stage 1, layer 1",
        "stage 1, layer 2, shifted",
        "stage 2, layer 1",
        "stage 2, layer 2, shifted",
    ]
    page.get_by_role("button", name="Layer stage 1, layer 2, shifted, head 1").click()
    until(page, "attention stages.0.blocks.1.attention 1 all")
    page.mouse.move(*over(page, 0, 0, 16, 24))
    said(page, "The cell in row 1, column 1 looked most at row 2, column 2 (1.00).")
    before = page.evaluate("() => document.getElementById('canvas').toDataURL()")
    page.locator("#windows button", has_text="none").click()
    wait_for(page, "old => document.getElementById('canvas').toDataURL() !== old", before)
    page.get_by_role("tab", name="Rollout").click()
    page.select_option("#layer", label="cells after stage 2")
    page.mouse.move(*over(page, 7, 11, 8, 12))
    until(page, "rollout stages.1.blocks.1.attention.rollout mean 7,11")
    page.get_by_role("tab", name="Position bias").click()
    said(page, "A query 0 below and 0 right of its key")
    page.mouse.move(*over(page, 0, 6, 7, 7))
    said(page, "A query 3 above and 3 right of its key")


def test_a_mixer_and_a_resnet_have_pages_too(show):
    seen = look_at(opened("mixer"), pixels())
    row = seen["blocks.0.mixing"][0].weights[0, 8]
    best = int(row.argmax())
    page = show(seen)
    until(page, "mixing blocks.0.mixing mean all")
    page.mouse.move(*over(page, 1, 2))
    said(page, f"The cell in row 2, column 3 moves most with row {best // 6 + 1}, column {best % 6 + 1} ")
    assert page.locator("#low").inner_text().startswith("-")
    page = show(look_at(opened("resnet"), pixels()))
    assert shown(page).startswith("classes grad-cam mean ")


def test_hostile_names_light_dark_and_narrow(show):
    names = ("</script><script>document.title='bad'</script>", "<img src=x onerror=document.title='bad'>", "a$b")
    page = show(look_at(opened("vit", classes=names), pixels()), color_scheme="dark")
    assert page.title() == "a picture · what runs/shapes looked at" and page.locator("img").count() == 0
    assert names[0] in page.locator("#answer").inner_text()
    dark = brightness(page)
    page.locator("#theme").click()
    assert dark < 150 < brightness(page)
    fits_when_narrow(page)


def test_numbers_have_a_page(show):
    seen = look_at(opened("swin", "number"), pixels())
    page = show(seen)
    assert page.locator("#answer").inner_text() == str(seen.notes["answer"]["value"])


def test_a_rectangle_that_does_not_fill_its_last_cells_is_cut_at_its_border(show):
    seen = look_at(opened("swin", size=(37, 51)), pixels())
    assert torch.is_tensor(seen["rollout"][0].weights)
    page = show(seen)
    box = page.locator("#canvas").bounding_box()
    assert box["width"] / box["height"] == pytest.approx(51 / 37, abs=0.01)
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] - 8)
    until(page, "attention stages.1.blocks.1.attention mean 9,12")
