"""Heat by word over a picture: the page, the sheet, the animation and the numbers all show the same cells."""

import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from captioners import captioner, pixels
from qkv.axis import Grid
from qkv.errors import ConfigError, RunError
from qkv.look.record import Trace
from qkv.look.told import _blocks, look_at_picture, picture_of, told_words
from qkv.look.told_draw import pixel_heat, save_look
from qkv.look.told_page import page


@pytest.fixture(scope="module")
def wide():
    """A look at a picture that is wider than what the model reads of it."""
    picture = np.random.default_rng(0).integers(0, 255, (60, 120, 3)).astype(np.uint8)
    return look_at_picture(captioner(), picture, caption="a red circle above a blue square")


def test_cells_tile_what_the_model_was_shown_of_a_rectangle(wide, tmp_path):
    save_look(wide, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as numbers:
        boxes, heat, words = numbers["boxes"], numbers["heat"], numbers["words"]
    left, top, right, bottom = wide.notes["picture"]["region"]
    assert (right - left, bottom - top) == (75, 60)  # 40 x 32 pixels out of 120 x 60: the height decides
    assert [boxes[:, 0].min(), boxes[:, 1].min()] == [left, top]
    assert boxes[:, 2].max() == pytest.approx(right, abs=0.01) and boxes[:, 3].max() == pytest.approx(bottom, abs=0.01)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    assert areas.sum() == pytest.approx((right - left) * (bottom - top), rel=1e-3)
    assert words.tolist() == ["a", "red", "circle", "above", "a", "blue", "square", "</s>"]
    assert heat.shape == (8, 4, 5) and heat.sum((1, 2)) == pytest.approx(np.ones(8), abs=1e-4)


@pytest.mark.parametrize("smooth", [False, True])
def test_heat_lies_on_its_cell(smooth):
    """Cells of 8 pixels over 20 x 28: the last row and column only begin inside."""
    grid = Grid(3, 4, (20, 28), cell=(8, 8))
    for cell in range(len(grid)):
        heat = np.zeros((3, 4))
        heat.flat[cell] = 1
        warm = pixel_heat(heat, grid, (40, 56), smooth)  # drawn at twice the size
        left, top, right, bottom = (2 * side for side in grid.box(cell))
        row, column = np.unravel_index(warm.argmax(), warm.shape)
        assert warm.shape == (40, 56) and left <= column < right and top <= row < bottom
        if not smooth:
            assert warm.sum() == (right - left) * (bottom - top)


def test_blocks_that_are_taken_away_cover_every_pixel_once():
    for grid, down, across in ((Grid(3, 4, (20, 28), cell=(8, 8)), 1, 1), (Grid(14, 14, (224, 224)), 2, 2)):
        blocks = _blocks(grid, down, across)
        assert blocks.shape == grid.image
        assert set(blocks.ravel()) == set(range(-(-grid.rows // down) * -(-grid.columns // across)))


def test_a_page_holds_everything_and_fetches_nothing(wide):
    text = page([wide, wide])
    assert "default-src 'none'" in text and not re.search(r"(?:src|href)=[\"']?https?:", text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    one = data["looks"][0]
    assert [word["text"] for word in one["words"]][:3] == ["a", "red", "circle"] and one["layers"][0]["rows"] == 4
    shown = told_words(wide)
    assert np.allclose(one["layers"][0]["heat"][0][1], shown[1].heat.ravel(), atol=1e-4)
    assert Image.open(io.BytesIO(__import__("base64").b64decode(one["png"]))).size == picture_of(wide).size


def test_a_page_of_too_many_heads_shows_their_mean_and_says_so():
    """BL-61."""
    seen = look_at_picture(captioner("caption-transformer"), pixels(1)[0], caption="a red circle")
    assert "mean of its heads" not in page([seen])
    assert "each layer is shown as the mean of its heads" in page([seen], limit=10)


def test_nothing_of_a_users_text_is_markup():
    seen = look_at_picture(captioner(), pixels(1)[0], caption="a </script><b> {{data}} & red circle")
    text = page([seen])
    assert text.count("</script>") == 2 and "<b>" not in text.split("</header>")[1]


def test_layers_and_heads_of_a_transformer_are_told_apart():
    seen = look_at_picture(captioner("caption-transformer"), pixels(1)[0], caption="a red circle")
    assert sum(isinstance(maps[0].key, Grid) for maps in seen.values()) == 2
    first, last = (told_words(seen, f"decoder.{i}.cross") for i in range(2))
    assert not np.allclose(first[0].heat, last[0].heat)
    heads = [told_words(seen, "decoder.1.cross", head)[0].heat for head in range(2)]
    assert np.allclose(np.mean(heads, 0), last[0].heat, atol=1e-6)
    with pytest.raises(ConfigError, match="no head 7"):
        told_words(seen, "decoder.1.cross", 7)
    with pytest.raises(ConfigError, match=r"no layer 'decoder\.9\.cross' looks at the picture"):
        told_words(seen, "decoder.9.cross")


@pytest.mark.parametrize("suffix", [".png", ".gif", ".webp"])
def test_pictures_are_drawn(wide, tmp_path, suffix):
    save_look(wide, tmp_path / f"a{suffix}", smooth=suffix != ".gif")
    image = Image.open(tmp_path / f"a{suffix}")
    assert min(image.size) > 100
    if suffix != ".png":
        assert image.n_frames > 2  # frames that are alike may be one


def test_a_trace_shows_itself_as_its_page_or_says_how_to_have_one(wide, tmp_path):
    wide.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page([wide])
    wide.save(tmp_path / "a.png")
    assert Image.open(tmp_path / "a.png").height > 100 and "Caption" in wide._repr_html_()
    bare = captioner().look(pixels(1)[0])
    for name in ("b.html", "b.png"):
        with pytest.raises(RunError, match=r"no picture in this trace.*look_at_picture"):
            bare.save(tmp_path / name)


def test_a_record_comes_back(wide, tmp_path):
    save_look(wide, tmp_path / "a.safetensors")
    again = Trace.load(tmp_path / "a.safetensors")
    assert all(np.array_equal(a.heat, b.heat) for a, b in zip(told_words(wide), told_words(again), strict=True))
    with pytest.raises(ConfigError, match=r"cannot be written as '\.bmp'"):
        save_look(wide, tmp_path / "a.bmp")
    with pytest.raises(RunError, match="no attention"):
        told_words(Trace({}, wide.notes))


def test_faithfulness_finds_what_a_word_hangs_on():
    """A captioner whose words hang on one corner, through the whole way: pixels, encoder, search."""
    teller = captioner()
    seen = look_at_picture(teller, pixels(1)[0], caption="a red circle", faithful=True)
    found = seen.notes["faithfulness"]
    assert len(found["words"]) == len(told_words(seen)) == 4
    for word, chance in zip(found["words"], seen.notes["token_scores"], strict=True):
        assert word["deletion"][0] == pytest.approx(chance, abs=1e-3)  # nothing gone yet
        assert word["deletion"][-1] == pytest.approx(word["random_deletion"][-1], abs=1e-3)  # all gone
        assert "uniform" in word["baselines"]
    assert re.match(r"\d of 4 words hang on what they looked at", found["sentence"])
    assert '"falls"' in page([seen])
