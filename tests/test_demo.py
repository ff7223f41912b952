"""The demonstration learns what it promises."""

import json

import pytest

from qkv.demo import demo


@pytest.mark.learning
@pytest.mark.timeout(600)
def test_the_demonstration_keeps_its_promise(tmp_path):
    report = demo(tmp_path)
    written = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert written["bleu"] == report.bleu >= 90
    assert written["chrf"] >= 90
    assert written["aer"] <= 0.15
    assert {p.name for p in tmp_path.iterdir()} >= {"data", "run", "look.html", "report.json"}
