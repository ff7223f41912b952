"""Pictures: words as text, Hangul in a font that has it, links ringed."""

import warnings
from xml.etree import ElementTree

import pytest
from traces import a_map, a_trace, korean_english, long_trace, soft, tokens

from qkv.axis import Frames, Grid, Tokens
from qkv.errors import ConfigError, RunError
from qkv.look import draw as drawing
from qkv.look.alignment import Reader
from qkv.look.draw import draw, draw_heads, grid_figure, labels
from qkv.look.record import Trace


def words_in(path) -> list[str]:
    return [
        "".join(node.itertext()).strip() for node in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_an_svg_holds_its_words_as_text(tmp_path):
    draw(korean_english(), tmp_path / "a.svg")
    found = words_in(tmp_path / "a.svg")
    assert {"나는", "학생이다", "student", "</s>"} <= set(found)
    assert any("decoder.blocks.1.cross" in text for text in found)
    draw(korean_english(), tmp_path / "b.svg", words=False)
    assert {"나", "stud"} <= set(words_in(tmp_path / "b.svg"))


def test_the_same_look_gives_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        draw(korean_english(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_png_is_a_picture(tmp_path):
    draw(korean_english(), tmp_path / "a.png", "encoder.blocks.0.attention", head=1)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    draw_heads(korean_english(), tmp_path / "b.png")
    draw_heads(long_trace(96, 2, 3), tmp_path / "c.png", kind="self")


def test_hangul_is_drawn_in_a_font_that_has_it(tmp_path):
    if drawing._cjk_family() is None:
        pytest.skip("no font for Korean installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(korean_english(), tmp_path / "a.png")
    assert drawing._cjk_family() in {"".join(t.get_fontfamily()[:1]) for t in _texts(grid_figure(_cross()))}


def test_without_such_a_font_one_warning_names_a_package(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "CJK_FAMILIES", ("No Such Family",))
    drawing._cjk_family.cache_clear()
    with pytest.warns(UserWarning, match="fonts-noto-cjk") as caught:
        draw(korean_english(), tmp_path / "a.png")
        draw(korean_english(), tmp_path / "b.png")
    assert len(caught) == 1
    drawing._cjk_family.cache_clear()


def test_a_dollar_is_no_formula(tmp_path):
    trace = a_trace(tokens(["$5"], ["and"], ["$6"], ["\\frac{"], ["x_1"], end=True), tokens(["a$b$c"], start=True))
    draw(trace, tmp_path / "a.svg")
    assert {"$5", "$6", "\\frac{", "a$b$c"} <= set(words_in(tmp_path / "a.svg"))


def test_links_of_the_notes_are_ringed():
    plain, ringed = (grid_figure(_cross(), links=links) for links in ([], [(0, 0), (1, 3), (7, 9)]))
    assert len(ringed.axes[0].patches) - len(plain.axes[0].patches) == 2  # the third is of words that are not here


def test_an_alignment_is_drawn_as_it_was_read(tmp_path):
    trace = korean_english()
    for reading, says in (("shifted", "comes in"), ("unshifted", "is predicted")):
        note = Reader("decoder.blocks.0.cross", (0, 2), reading).note(trace)
        draw(Trace(trace.maps, {"alignment": note}), tmp_path / "a.svg")
        found = words_in(tmp_path / "a.svg")
        assert any("decoder.blocks.0.cross · mean of 2 heads" in text for text in found)
        assert any(f"row: the word that {says}" in text for text in found)
        assert ("<s>" in found) == (reading == "shifted")


def test_axes_of_images_and_videos_have_names():
    assert labels(Grid(1, 2, (8, 16), prefix=("[CLS]",))) == ["[CLS]", "0,0", "0,1"]
    assert labels(Frames((0.0, 0.5))) == ["0 s", "0.5 s"]
    assert labels(Tokens(("▁a", "Ġb", "</s>"), ((0, 1), (1, 3), (3, 3)), "a b")) == ["a", "b", "</s>"]


def test_positions_and_long_texts_are_drawn(tmp_path):
    axis = Tokens(tuple("0123"), ((0, 0),) * 4, "")
    map = a_map(soft(1, 4, 4) - 0.4, axis, axis, "encoder.positions", "position")
    draw(Trace({map.name: [map]}), tmp_path / "a.svg")
    draw(long_trace(200, 1, 1), tmp_path / "b.png")


def test_what_cannot_be_drawn_says_so(tmp_path):
    with pytest.raises(ConfigError, match=r"'\.pdf'.*expected \.svg or \.png"):
        draw(korean_english(), tmp_path / "a.pdf")
    with pytest.raises(ConfigError, match=r"Did you mean 'decoder.blocks.0.cross'"):
        draw(korean_english(), tmp_path / "a.svg", "decoder.block.0.cross")
    with pytest.raises(ConfigError, match="no head 9"):
        draw(korean_english(), tmp_path / "a.svg", head=9)
    with pytest.raises(RunError, match="no map"):
        draw(Trace(), tmp_path / "a.svg")


def _cross():
    return korean_english()["decoder.blocks.1.cross"][0]


def _texts(figure):
    return [label for axes in figure.axes for label in axes.get_xticklabels()]
