"""A test set's scores are those of the answers; classes that the model does not know are refused by name."""

import json
import re

import numpy as np
import pytest
from PIL import Image
from test_picture_classifier import made, pixels

from qkv.data.image_files import ImageFiles
from qkv.errors import DataError
from qkv.look.mistakes import looked_by, mistakes_page
from qkv.tasks.evaluate_pictures import evaluate_pictures


def folders(root, names=("1", "10"), count: int = 6):
    """Class folders; the model knows 1, 10 and 2, and the test set lacks the last."""
    for label in names:
        (root / label).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(pixels(100 * int(label) + i, 14, 14)).save(root / label / f"{i}.png")
    return root


def test_scores_are_those_of_the_answers_and_the_map_of_classes_is_the_models(tmp_path):
    classifier = made()
    root = folders(tmp_path / "test")
    (root / "10" / "broken.png").write_bytes(b"no picture")
    result = evaluate_pictures(classifier, ImageFiles(str(root)))
    files = sorted(root.glob("*/[0-9].png"))
    right = [classifier(file).label == file.parent.name for file in files]
    assert result.pictures == 12 and len(result.unread) == 1 and "broken.png" in result.unread[0]
    assert result.scores["accuracy"] == pytest.approx(np.mean(right))
    low, high = result.intervals["accuracy"]
    assert low <= result.scores["accuracy"] <= high
    assert [row.count for row in result.classes] == [6, 6, 0]
    assert np.sum(result.confusion) == 12 and np.trace(result.confusion) == sum(right)
    assert len(result.mistakes) == 12 - sum(right)
    assert all(a.wrong >= b.wrong for a, b in zip(result.mistakes, result.mistakes[1:], strict=False))
    told = str(result)
    assert "accuracy" in told and "calibration error" in told and "could not be read" in told


def test_test_is_taken_of_a_folder_with_parts(tmp_path):
    for part in ("train", "val", "test"):
        folders(tmp_path / part, count=2)
    assert evaluate_pictures(made(), ImageFiles(str(tmp_path))).where == f"test of {tmp_path}"


def test_a_class_that_the_model_does_not_know_is_refused_by_name(tmp_path):
    root = folders(tmp_path / "test", ("1", "3"), 1)
    with pytest.raises(DataError, match=r"the class '3', which the model has not.*1, 10, 2"):
        evaluate_pictures(made(), ImageFiles(str(root)))


def test_json_holds_no_word_that_json_has_not(tmp_path):
    (tmp_path / "a.csv").write_text("path,label\n1/0.png,3\n1/1.png,3\n")
    folders(tmp_path, ("1",), 2)
    result = evaluate_pictures(made("number", ()), ImageFiles(str(tmp_path / "a.csv")))
    told = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert told["scores"]["r2"] is None and told["scores"]["mae"] > 0 and len(told["mistakes"]) == 2


def test_several_labels(tmp_path):
    folders(tmp_path, ("1",), 3)
    (tmp_path / "a.csv").write_text("path,label\n1/0.png,1|2\n1/1.png,2\n1/2.png,\n")
    result = evaluate_pictures(made("several"), ImageFiles(str(tmp_path / "a.csv")))
    assert set(result.scores) == {"map", "micro_f1", "macro_f1"} and not result.confusion
    assert [row.count for row in result.classes] == [1, 0, 2]


def test_the_page_of_mistakes_stands_alone(tmp_path):
    classifier, root = made(), folders(tmp_path / "test")
    result = evaluate_pictures(classifier, ImageFiles(str(root)))
    page = mistakes_page(result, looked_by(classifier))
    cards = page.count('<section class="card">')
    assert cards == len(result.mistakes) > 0
    assert page.count('<img src="data:image/png;base64,') >= 3 * cards  # the picture, and two classes
    assert not re.search(r"(src|href)=\"(?!data:)", page) and "{{" not in page
    plain = mistakes_page(result)
    assert plain.count("<img") == cards


def test_a_name_cannot_write_into_the_page(tmp_path):
    root = folders(tmp_path / "test", ("1",), 1)
    (root / "1" / "0.png").rename(root / "1" / "<script>{{cards}}.png")
    classifier = made()
    classifier.model.head.output.bias.data[0] = -100  # never right
    page = mistakes_page(evaluate_pictures(classifier, ImageFiles(str(root))))
    assert "<script>" not in page and "&lt;script&gt;{{cards}}.png" in page
