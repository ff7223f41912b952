"""The page of words: one offline file, everything in it, nothing that runs."""

import numpy as np
import pytest

import qkv
from qkv.data.words import Words
from qkv.errors import RunError
from qkv.look.word_page import project, word_page
from qkv.tasks.word_ratios import count_ratios
from qkv.tasks.word_vectors import WordVectors
from qkv.train.loop import train
from qkv.train.options import from_mapping

pytest.importorskip("sklearn")
ICE = ["ice is solid water"] * 18 + ["steam is gas of water"] * 18 + ["fashion is gas"]


def test_a_page_of_everything(tmp_path):
    draw = np.random.default_rng(0)
    names = ["<b>", "king", "queen", "왕", *[f"w{i}" for i in range(30)]]
    vectors = WordVectors(Words(names, np.arange(34)), draw.normal(size=(34, 12)).astype(np.float32))
    page = word_page(vectors, ["king", "왕"], 5, [("king", "queen"), ("w1", "w2")])
    assert "Principal components" in page and "t-SNE" in page and page.count('class="arrow"') == 4
    assert "<script" not in page and "default-src 'none'" in page and "http" not in page.replace("http-equiv", "")
    assert "<b>" not in word_page(vectors, ["<b>"], 3).split("<body>")[1]
    assert "{{" not in page


@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
def test_a_map_of_any_number_of_words(count):
    units = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    maps = project(units / np.linalg.norm(units, axis=1, keepdims=True))
    assert len(maps) == 1 + (count >= 5) and all(points.shape == (count, 2) for _, points in maps)
    assert all(np.isfinite(points).all() for _, points in maps)


def test_ratios_of_ice_and_steam(tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(ICE) + "\n")
    train(from_mapping("vectors", {"data": {"folder": str(tmp_path / "t.txt"), "min_count": 1}, "out": tmp_path / "run",
                                   "size": {"dim": 4}, "loop": {"epochs": 1}, "spread": {"threads": 1}}))  # fmt: skip
    vectors = qkv.load(tmp_path / "run")
    told = count_ratios(vectors, "ice", "steam", ["solid", "gas", "water", "fashion"])
    solid, gas, water, fashion = told.rows
    # ice: is 1, solid 1/2, water 1/3; steam: is 1, gas 1/2, of 1/3, water 1/4; as often.
    assert solid.one == pytest.approx((1 / 2) / (1 + 1 / 2 + 1 / 3)) and solid.ratio is None
    assert gas.ratio == 0 and fashion.ratio is None
    assert water.ratio == pytest.approx((1 / 3 / (11 / 6)) / (1 / 4 / (25 / 12)))
    assert "P(k | ice)" in word_page(vectors, ["ice"], 3, ratios=[told])
    assert {row.context for row in count_ratios(vectors, "ice", "steam").rows} >= {"solid", "gas"}
    with pytest.raises(RunError, match="keeps no text"):
        count_ratios(WordVectors(vectors.words, vectors.rows, tmp_path), "ice", "steam")
