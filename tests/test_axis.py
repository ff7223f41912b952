"""Axes lead back to what they came from: characters, pixels, seconds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.axis import Frames, Grid, Tokens, axis_from_json, axis_to_json

texts = st.text(st.sampled_from("ab 나는🐈é"), max_size=20)


def cut(text: str, places: set[int]) -> Tokens:
    """The text cut at ``places``, with an end mark."""
    ends = sorted({place % len(text) for place in places} - {0} if text else set())
    spans = list(zip([0, *ends], [*ends, len(text)], strict=True)) if text else []
    return Tokens((*(text[a:b] for a, b in spans), "</s>"), (*spans, (len(text), len(text))), text)


@given(text=texts, places=st.sets(st.integers(1, 99)))
def test_every_position_belongs_to_one_word_in_order(text, places):
    axis = cut(text, places)
    positions = [position for word in axis.words() for position in word.positions]
    assert positions == list(range(len(axis)))


@given(text=texts, places=st.sets(st.integers(1, 99)))
def test_words_are_blank_separated_and_slice_back_to_the_text(text, places):
    axis = cut(text, places)
    for word in axis.words():
        if not word.mark:
            start, end = word.span
            assert text[start:end] == word.text
            assert not any(character.isspace() for character in word.text)
            assert text[start - 1 : start].strip() == "" and text[end : end + 1].strip() == ""
    assert axis.words()[-1].mark


def test_a_piece_that_carries_its_blank_begins_the_word_after_it():
    axis = Tokens(("▁나는", "▁학", "생", "</s>"), ((0, 2), (2, 4), (4, 5), (5, 5)), "나는 학생")
    assert [(word.text, word.positions, word.mark) for word in axis.words()] == [
        ("나는", (0,), False), ("학생", (1, 2), False), ("</s>", (3,), True)
    ]  # fmt: skip


def test_marks_side_by_side_are_words_of_their_own():
    axis = Tokens(("<s>", "<s>", "a"), ((0, 0), (0, 0), (0, 1)), "a")
    assert [word.positions for word in axis.words()] == [(0,), (1,), (2,)]


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), image=st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_the_cells_of_a_grid_tile_the_image(rows, columns, image):
    grid = Grid(rows, columns, image, prefix=("[CLS]", "[REG]"))
    assert len(grid) == rows * columns + 2
    assert grid.box(0) is grid.box(1) is None
    boxes = [grid.box(position) for position in range(2, len(grid))]
    height, width = image
    assert sum((right - left) * (bottom - top) for left, top, right, bottom in boxes) == pytest.approx(height * width)
    assert boxes[0][:2] == (0, 0)
    assert boxes[-1][2:] == (width, height)
    for i, (left, top, right, bottom) in enumerate(boxes):
        if (i + 1) % columns:
            assert boxes[i + 1][:2] == (right, top)
        if i + columns < len(boxes):
            assert boxes[i + columns][:2] == (left, bottom)


@pytest.mark.parametrize(
    "axis",
    [
        Tokens(("나", "</s>"), ((0, 1), (1, 1)), "나"),
        Tokens((), (), ""),
        Grid(2, 3, (32, 48), ("[CLS]",)),
        Frames((0.0, 0.5), ("[CLS]",)),
    ],
    ids=lambda axis: type(axis).__name__,
)
def test_json_and_back_is_the_identity(axis):
    assert axis_from_json(json.loads(json.dumps(axis_to_json(axis)))) == axis


def test_frames_count_their_prefix():
    assert len(Frames((0.0, 0.5, 1.0), ("[CLS]",))) == 4
