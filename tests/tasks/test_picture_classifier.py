"""Picture in, answer out: one decoding path, the same answer in any batch, and nothing that stops a long run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.errors import DataError
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.tasks.picture_classifier import PictureAnswer, PictureClassifier

CLASSES = ("1", "10", "2")  # as names are sorted


def made(labels: str = "class", classes: tuple[str, ...] = CLASSES) -> PictureClassifier:
    codec = ImageCodec(Preprocess((12, 12), crop=0.9), classes, labels, 50.0, 10.0)
    torch.manual_seed(0)
    config = ResNetConfig(classes=codec.outputs, stem="small", stem_width=4, widths=(4, 8), depths=(1, 1))
    return PictureClassifier(ResNet(config), codec)


def pixels(seed: int, height: int = 20, width: int = 16) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def files(tmp_path) -> list[Path]:
    found = []
    for i in range(7):
        found.append(tmp_path / f"{i}.png")
        Image.fromarray(pixels(i, 20 + i)).save(found[-1])
    return found


def test_a_path_an_image_and_an_array_have_the_same_answer(files):
    classifier = made()
    by_path = classifier(files[0]).probabilities
    for picture in (str(files[0]), Image.open(files[0]), pixels(0)):
        assert (classifier(picture).probabilities == by_path).all()
    grey = pixels(1)[:, :, 0]
    three = classifier(np.repeat(grey[:, :, None], 3, 2)).probabilities
    assert (classifier(grey).probabilities == three).all()


def test_a_turned_photograph_is_answered_as_it_was_held(tmp_path):
    upright, exif = Image.fromarray(pixels(3, 16, 12)), Image.Exif()
    exif[0x0112] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "phone.png", exif=exif)
    classifier = made()
    assert (classifier(tmp_path / "phone.png").probabilities == classifier(upright).probabilities).all()


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_answers_do_not_depend_on_the_batch(files, batch):
    classifier = made()
    alone = [classifier(file) for file in files]
    together = list(classifier.answers(files, batch))
    assert [answer.name for answer in together] == [str(file) for file in files]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-6)


def test_what_cannot_be_read_is_marked_and_the_others_are_answered(files, tmp_path):
    (tmp_path / "text.jpg").write_text("no picture")
    cut = tmp_path / "cut.png"
    cut.write_bytes(files[1].read_bytes()[:200])
    header = b"P6 20000 20000 255\n"
    (tmp_path / "huge.ppm").write_bytes(header + b"\0" * 100)
    asked = [files[0], tmp_path / "text.jpg", cut, tmp_path / "gone.png", tmp_path / "huge.ppm", files[2]]
    answers = list(made().answers(asked, batch=2))
    assert [bool(answer.mark) for answer in answers] == [False, True, True, True, True, False]
    assert "20,000 x 20,000" in answers[4].mark or "400,000,000" in answers[4].mark
    assert answers[1].label == "" and answers[1].top(3) == []
    with pytest.raises(DataError, match="this is no picture"):
        made()(tmp_path / "text.jpg")


def test_a_name_is_printed_and_not_its_place():
    answer = PictureAnswer("a.png", CLASSES, np.array([0.1, 0.7, 0.2]))
    assert answer.label == "10" and answer.top(2) == [("10", 0.7), ("2", 0.2)]
    assert str(answer) == "10 0.700  2 0.200  1 0.100"


def test_several_labels_are_those_likelier_than_not():
    answer = PictureAnswer("a.png", CLASSES, np.array([0.6, 0.2, 0.5]), several=True)
    assert answer.labels == ("1", "2") and answer.label == "1, 2"
    assert made("several")(pixels(0)).several


def test_a_number_is_in_the_unit_of_the_targets():
    classifier = made("number", ())
    output = classifier.outputs(classifier.codec.preprocess(pixels(0))[None])
    assert classifier(pixels(0)).number == pytest.approx(float(output) * 10 + 50)


def test_what_is_no_picture():
    with pytest.raises(DataError, match=r"array of uint8 with the shape \[0, 0, 3\].*of one pixel or more"):
        made()(np.zeros((0, 0, 3), np.uint8))
    with pytest.raises(DataError, match=r"array of float64 with the shape \[2, 2, 3\]; expected uint8"):
        made()(np.zeros((2, 2, 3)))
    with pytest.raises(DataError, match="a int; expected a path"):
        made()(3)
