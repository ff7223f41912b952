"""``qkv look`` of a run that answers pictures."""

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from qkv.axis import Grid
from qkv.cli import main
from qkv.cli.look_picture import height_and_width
from qkv.errors import ConfigError
from qkv.look.record import Trace
from qkv.models.saved import save_model

sys.path.insert(0, str(Path(__file__).parent.parent / "look"))
from looked import opened, pixels


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run's folder; what opens it is the stand-in of the tests of looking."""
    made = opened("vit")
    save_model(made.model, tmp_path / "run", "vit")
    (tmp_path / "run" / "answer.json").write_text(json.dumps({"task": "classify", "kind": "pictures"}))
    Image.fromarray(pixels()).save(tmp_path / "a.png")
    monkeypatch.setattr("qkv.tasks.load.load", lambda folder, device=None: made)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("suffix", ["html", "png", "npz"])
def test_it_writes_what_is_asked_for(run, capsys, suffix):
    assert main(["look", "run", "a.png", "--out", f"out.{suffix}", "--classes", "dog,cat", "--top", "1"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4 and said[0].split()[1] in ("cat", "dog", "bird") and f"wrote out.{suffix}: 8 maps" == said[-1]
    assert Path(f"out.{suffix}").stat().st_size > 1000


def test_options_reach_the_look(run, capsys):
    command = "look run a.png --out a.safetensors --size 48x64 --layers blocks.1.* --heads 0,2 --rollout max --faithful"
    assert main([*command.split(), "--samples", "2", "--discard", "0.5"]) == 0
    assert "chance here" in capsys.readouterr().out
    seen = Trace.load("a.safetensors")
    map = seen["blocks.1.attention"][0]
    assert map.heads == (0, 2) and map.key == Grid(6, 8, (48, 64), ("[CLS]",))
    assert seen.notes["rollout"] == {"fusion": "max", "residual": 0.5, "discard": 0.5}


def test_mistakes_are_one_sentence(run, capsys):
    assert main(["look", "run", "b.png"]) == 2
    assert "b.png: cannot be read" in capsys.readouterr().err
    assert main(["look", "run", "a.png", "--classes", "cow"]) == 2
    assert "there is no class 'cow'" in capsys.readouterr().err
    for option in ("--top", "--samples"):
        assert main(["look", "run", "a.png", "--faithful", option, "0"]) == 2
        assert f"{option} is 0" in capsys.readouterr().err
    assert main(["look", "run", "a.png", "--out", "a.gif"]) == 2
    assert ".npz or .json" in capsys.readouterr().err


def test_sizes():
    assert height_and_width(None) is None and height_and_width("384") == (384, 384)
    assert height_and_width("384x512") == (384, 512)
    for wrong in ("", "0", "3x4x5", "large", "-3"):
        with pytest.raises(ConfigError, match="--size is"):
            height_and_width(wrong)


def test_help_shows_pictures(capsys):
    assert main(["look", "--help"]) == 0
    told = capsys.readouterr().out
    assert "a run of classify pictures" in told and "--classes wren,robin" in told
