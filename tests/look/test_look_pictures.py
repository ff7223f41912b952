"""Looking at how a picture was answered: every model, other sizes, odd files, what is kept, and the page's data."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from looked import SIZES, opened, pixels
from PIL import Image

from qkv.data.pictures import decode
from qkv.data.preprocess import IMAGENET
from qkv.errors import ConfigError, DataError, RunError
from qkv.look.packing import LADDER
from qkv.look.picture_page import picture_page
from qkv.look.pictures import look_at
from qkv.look.record import Trace
from samples import close

EXPLAINED = ["rollout", "gradient-rollout", "grad-cam", "gradient"]


def page_data(trace: Trace, **how) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', picture_page(trace, **how), re.S)[1])


def shown(trace: Trace) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(trace.notes["picture"]["png"]))))


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("labels", ["class", "several", "number"])
def test_every_model_and_every_kind_of_answer(name, labels):
    run = opened(name, labels)
    seen = look_at(run, pixels())
    image = run.codec.preprocess(pixels())[None]
    with torch.no_grad():
        outputs = run.model(image)[0]
    answer = seen.notes["answer"]
    if labels == "number":
        assert answer["value"] == pytest.approx(run.codec.decode(outputs[None])[0]) and answer["explained"] == ["value"]
    else:  # as without looking
        shares = outputs.sigmoid() if labels == "several" else outputs.softmax(-1)
        assert [top["name"] for top in answer["top"]] == [run.codec.classes[i] for i in shares.argsort(descending=True)]
        assert [top["probability"] for top in answer["top"]] == pytest.approx(sorted(shares.tolist())[::-1], abs=1e-5)
    looks = name in ("vit", "swin")
    assert [map for map in seen if map in EXPLAINED] == EXPLAINED[0 if looks else 2 :]
    assert ("mixing" in {map.kind for map in seen.select()}) == (name == "mixer")
    data = page_data(seen)
    assert [section["id"] for section in data["sections"]] == {
        "vit": ["attention", "rollout", "classes", "position"],
        "swin": ["attention", "rollout", "classes", "bias"],
        "mixer": ["mixing", "classes"],
        "resnet": ["classes"],
    }[name]  # fmt: skip


@pytest.mark.parametrize("by", ["gradient", "grad-cam", "blocks.1.attention", None])
def test_faithfulness_of_any_map(by):
    seen = look_at(opened("vit"), pixels(), faithful=True, by=by, samples=4)
    note = seen.notes["faithfulness"]
    assert note["by"] == (by or "rollout") and set(note["fills"]) == {"mean", "blur"}
    names = {"random", "centre", "gradient", "rollout", "gradient-rollout", "grad-cam", note["by"]}
    assert set(note["fills"]["mean"]["curves"]) == names
    assert json.loads(json.dumps(note)) == note
    assert note["sentence"] in page_data(seen)["faithfulness"]["sentence"]


def test_a_mixer_and_a_resnet_are_judged_by_grad_cam():
    for name in ("mixer", "resnet"):
        note = look_at(opened(name), pixels(), faithful=True, samples=2).notes["faithfulness"]
        assert note["by"] == "grad-cam" and max(note["grid"]) <= 16


def test_a_resnet_has_no_heads_and_says_what_is_shown():
    assert "no attention. Shown is what its answer hangs on" in look_at(opened("resnet"), pixels()).notes["remark"]
    with pytest.raises(ConfigError, match="no heads to choose"):
        look_at(opened("resnet"), pixels(), heads=[0])


def test_what_is_asked_for_is_checked():
    run = opened("vit")
    for wrong, message in [
        (dict(classes=["cart"]), r"there is no class 'cart'\. Did you mean 'cat'"),
        (dict(layers="encoder.*"), r"no layer matches 'encoder\.\*'"),
        (dict(heads=[9]), r"has no head 9; expected 0 to 3"),
        (dict(faithful=True, by="blocks.7.attention"), r"no map is called 'blocks\.7\.attention'\. Did you mean"),
        (dict(rollout="sum"), r"cannot be fused by 'sum'"),
    ]:
        with pytest.raises(ConfigError, match=message):
            look_at(run, pixels(), **wrong)


def test_classes_asked_for_come_first():
    seen = look_at(opened("vit"), pixels(), classes=["dog"], top=1)
    assert seen["grad-cam"][0].query.pieces[0] == "dog" and seen.notes["answer"]["explained"][0] == "dog"


# --- Sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["timm", "hf", "torchvision", "linear"])
@pytest.mark.parametrize("size", [(48, 32), (64, 96), (16, 72)])
def test_a_vit_read_at_another_size(size, rule):
    run = opened("vit", resampling=rule, registers=1)
    seen = look_at(run, pixels(100, 140), size=size)
    rows, columns = size[0] // 8, size[1] // 8
    map = seen["blocks.1.attention"][0]
    assert (map.key.rows, map.key.columns, map.key.image) == (rows, columns, size)
    assert map.weights.shape[-1] == 2 + rows * columns and map.onto_image(0).shape == (4, rows, columns)
    assert (seen["patches.position"][0].key.rows, seen["rollout"][0].key.columns) == (rows, columns)
    height, width = shown(seen).shape[:2]
    assert height / width == pytest.approx(size[0] / size[1], rel=0.05) and height >= size[0]


def test_at_its_own_size_given_by_name_nothing_changes():
    run = opened("vit")
    own, named = (look_at(run, pixels(), size=size) for size in (None, (32, 48)))
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(own.select(), named.select(), strict=True))


def test_a_patch_that_does_not_divide_is_refused_a_swin_pads_and_a_mixer_names_its_grid():
    with pytest.raises(DataError, match="36 x 48 pixels cannot be cut into patches of 8 x 8"):
        look_at(opened("vit"), pixels(), size=(36, 48))
    seen = look_at(opened("swin"), pixels(), size=(37, 51))  # 19 x 26 cells, then 10 x 13, in windows of 4
    first = seen["stages.0.blocks.1.attention"][0]
    assert (first.key.rows, first.key.columns) == (19, 26) and (first.where < 0).any()
    close(seen["rollout"][0].weights.sum(-1), torch.ones(1, 1))
    with pytest.raises(DataError, match=r"expected 32 x 48: a Mixer has weights for its grid of 4 x 6 patches"):
        look_at(opened("mixer"), pixels(), size=(48, 48))


# --- Files, labels, memory -----------------------------------------------------------------------------------------


def test_a_turned_photograph_is_drawn_as_it_was_held(tmp_path):
    held = np.zeros((40, 20, 3), np.uint8)
    held[:20] = 250  # bright above
    image = Image.fromarray(np.ascontiguousarray(np.rot90(held)))  # lying on its side, as the sensor saw it
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.jpg", exif=exif, quality=100)
    seen = look_at(opened("vit", size=(32, 16), image=(32, 16)), tmp_path / "a.jpg")
    drawn = shown(seen).astype(int)
    assert seen.notes["picture"]["name"] == "a.jpg" and seen.notes["picture"]["file_size"] == [40, 20]
    assert drawn[: len(drawn) // 3].min() > 200 and drawn[-len(drawn) // 3 :].max() < 50


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "CMYK"])
def test_the_picture_shown_is_the_picture_read(tmp_path, mode):
    Image.fromarray(pixels(32, 48)).convert(mode).save(tmp_path / f"a.{'tif' if mode == 'CMYK' else 'png'}")
    (file,) = tmp_path.iterdir()
    run = opened("vit")
    seen = look_at(run, file)
    assert np.array_equal(shown(seen), run.codec.preprocess.shown(decode(file).pixels))
    again = look_at(run, file.read_bytes())
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(seen.select(), again.select(), strict=True))


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"a\.png: this is no picture"):
        look_at(opened("vit"), tmp_path / "a.png")


def test_only_the_middle_that_was_read_is_shown_and_as_large_as_the_file_has_it():
    seen = look_at(opened("vit"), pixels(400, 2000))  # 2 x 3 of it: the middle 600 columns
    left, top, right, bottom = seen.notes["picture"]["region"]
    assert (top, bottom) == (0, 400) and right - left == pytest.approx(600, abs=8)
    assert shown(seen).shape == (299, 448, 3) and seen.notes["picture"]["size"] == [32, 48]


def test_constants_are_the_runs_own():
    run = opened("vit")
    other = opened("vit")
    object.__setattr__(other.codec.preprocess, "mean", IMAGENET["mean"])
    one, two = (look_at(each, pixels()).notes["answer"]["top"][0]["probability"] for each in (run, other))
    assert one != two


def test_classes_keep_their_names_whatever_their_order():
    run = opened("vit", classes=("1", "2", "10"))
    with torch.no_grad():
        run.model.head.output.bias[2] += 9
    top = look_at(run, pixels()).notes["answer"]["top"]
    assert top[0]["name"] == "10"


def test_only_what_is_asked_for_is_kept():
    run = opened("vit")
    seen = look_at(run, pixels(), layers="blocks.1.*", heads=[2])
    assert [name for name in seen if name not in EXPLAINED] == ["blocks.1.attention", "blocks.1.attention.rollout"]
    assert seen["blocks.1.attention"][0].heads == (2,) and seen["blocks.1.attention"][0].weights.shape[0] == 1
    whole = look_at(run, pixels())
    close(seen["rollout"][0].weights, whole["rollout"][0].weights)  # of all layers and heads, whatever is kept
    assert "rollout" not in look_at(run, pixels(), rollout="none")


def test_a_page_that_would_be_too_large_shows_less_and_says_so():
    seen = look_at(opened("vit", image=(160, 160), size=(160, 160)), pixels(), layers="blocks.*")  # 400 patches
    small, whole = (re.findall(r'id="weights-\d+">(.*?)<', picture_page(seen, limit=n)) for n in (120_000, 24_000_000))
    assert sum(map(len, small)) < 120_000 < sum(map(len, whole))
    reduced = page_data(seen, limit=120_000)["reduced"]
    assert re.match(
        r"A reduced view, for size: each row shows its \d+ largest weights only \(\d+ % of all weight\)", reduced
    )
    assert page_data(seen)["reduced"] == "" and len(LADDER) > 5


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "json"])
@pytest.mark.parametrize("name", ["vit", "swin"])
def test_records_come_back(tmp_path, name, suffix):
    seen = look_at(opened(name), pixels(), faithful=True, samples=2)
    seen.save(tmp_path / f"a.{suffix}")
    back = Trace.load(tmp_path / f"a.{suffix}")
    assert list(back) == list(seen) and back.notes == json.loads(json.dumps(seen.notes))
    for one, other in zip(seen.select(), back.select(), strict=True):
        close(one.weights, other.weights, 0 if suffix != "json" else 1e-6)
        assert (one.key, one.query, one.kind, one.heads) == (other.key, other.query, other.kind, other.heads)
        assert one.where is None or torch.equal(one.where, other.where)
    if suffix != "json":
        assert page_data(back) == page_data(seen)


def test_a_broken_npz_is_refused(tmp_path):
    for content in (b"", b"PK\x03\x04 no zip", b"something else"):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(RunError, match=r"a\.npz: not a record of qkv"):
            Trace.load(tmp_path / "a.npz")


@pytest.mark.parametrize("name", SIZES)
def test_drawings(tmp_path, name):
    seen = look_at(opened(name), pixels(), faithful=name == "vit", samples=2)
    for file in ("a.svg", "b.svg", "a.png"):
        seen.save(tmp_path / file)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "grad-cam" in text and (("rollout" in text) == (name in ("vit", "swin")))


def test_a_user_can_look_by_one_name():
    import qkv.look

    seen = qkv.look(opened("swin"), pixels(), top=1)
    assert isinstance(seen, Trace) and seen.notes["answer"]["explained"] and "iframe" in seen._repr_html_()
