"""Published image weights as runs: every kind of file, what lies beside it, what is refused and in which words."""

import json
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from qkv.cli import main
from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import IMAGENET, Preprocess
from qkv.errors import ConfigError, RunError
from qkv.models.mixer import MixerConfig
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.saved import build, load_model, save_model
from qkv.models.swin import SwinConfig
from qkv.models.vit import ViTConfig
from qkv.tasks.settings import family, write_settings
from qkv.weights.image_configs import hf_preprocess, hf_preprocessor
from qkv.weights.image_shapes import LAYOUTS
from qkv.weights.images import export_images, import_hf, import_images
from qkv.weights.published import export_run, import_published
from samples import tensor

CONFIGS = {
    "vit": ViTConfig(3, (16, 24), 8, 12, 2, 3, 20),
    "swin": SwinConfig(3, 2, 4, 8, (1, 2), (2, 4)),
    "mixer": MixerConfig(3, (16, 16), 8, 12, 2, 5, 20),
    "resnet": ResNetConfig(3, stem_width=4, widths=(4, 8), depths=(2, 1)),
}
HALF_VIT = {"heads": 3, "image": "16x24", "scaling": "half"}


def weights(kind: str, origin: str, config=None) -> dict[str, torch.Tensor]:
    """A random model's, by the names of an origin."""
    torch.manual_seed(0)
    config = config or CONFIGS[kind]
    return LAYOUTS[kind](origin, config).save(build(kind, config).state_dict())


def run_of(kind: str, folder, config=None, prepare: Preprocess | None = None, labels: str = "class"):
    """A run of ours, as training leaves it."""
    torch.manual_seed(0)
    config = config or CONFIGS[kind]
    model = build(kind, config)
    save_model(model, folder)
    classes = tuple(f"kind {i}" for i in range(config.classes))
    ImageCodec(prepare or Preprocess(getattr(config, "image", (16, 16))), classes, labels).save(folder / "codec")
    write_settings(folder, task="classify", kind="pictures")
    return folder


# --- files


@pytest.mark.parametrize("kind", ["vit", "mixer"])
def test_the_original_release_there_and_back(kind, tmp_path):
    theirs = {name: tensor.numpy() for name, tensor in weights(kind, "npz").items()}
    np.savez(tmp_path / "weights.npz", **theirs)
    known = {"image": "16x24"} if kind == "vit" else {}
    import_images("npz", str(tmp_path / "weights.npz"), tmp_path / "run", **known)
    model = load_model(tmp_path / "run")
    assert model.config == (replace(CONFIGS[kind], resampling="linear") if kind == "vit" else CONFIGS[kind])
    prepare = ImageCodec.load(tmp_path / "run" / "codec").preprocess
    assert (prepare.size, prepare.mean, prepare.stretch) == (model.config.image, (0.5, 0.5, 0.5), True)
    export_images(tmp_path / "run", tmp_path / "back.npz")
    with np.load(tmp_path / "back.npz") as back:
        assert set(back.files) == set(theirs) and all((back[name] == theirs[name]).all() for name in theirs)


@pytest.mark.parametrize("wrap", [dict, lambda w: {"state_dict": w, "best_prec1": 91.7}, lambda w: {"model": w}])
def test_a_pickle_of_tensors_and_what_training_programs_put_around_it(wrap, tmp_path):
    theirs = weights("resnet", "torchvision")
    torch.save(wrap(OrderedDict(theirs)), tmp_path / "weights.pth")
    lines = import_images("torchvision", str(tmp_path / "weights.pth"), tmp_path / "run")
    assert lines[-1] == f"all {len(theirs)} tensors are loaded"
    assert "bilinear, mean 0.485" in lines[1] and "no file beside the weights says so" in lines[1]
    assert load_model(tmp_path / "run").config == CONFIGS["resnet"]


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("suffix", ["pth", "bin", "th", "npz"])
def test_a_pickle_that_wants_more_is_refused_and_not_run(suffix, tmp_path, recwarn):  # BL-48
    file, mark = tmp_path / f"weights.{suffix}", tmp_path / "mark"
    if suffix == "npz":
        np.savez(file, a=np.array([Trap(mark)], dtype=object))
    else:
        torch.save({"conv1.weight": Trap(mark)}, file)
    with pytest.raises(
        RunError, match=r"weights\.\w+: holds more than (tensors|arrays), or is broken, and was not read"
    ):
        import_images("npz" if suffix == "npz" else "timm", str(file), tmp_path / "run")
    assert not recwarn.list
    assert not mark.exists() and not (tmp_path / "run").exists()


@pytest.mark.parametrize("suffix", ["safetensors", "pth", "npz"])
def test_a_broken_file(suffix, tmp_path):
    (tmp_path / f"weights.{suffix}").write_bytes(b"no such thing " * 9)
    with pytest.raises(RunError, match=r"not a whole safetensors file|is broken"):
        import_images("npz" if suffix == "npz" else "timm", str(tmp_path / f"weights.{suffix}"), tmp_path / "run")


def test_half_precision_is_read_as_float32(tmp_path):
    theirs = {name: t.half() if t.is_floating_point() else t for name, t in weights("resnet", "timm").items()}
    save_file(theirs, tmp_path / "weights.safetensors")
    import_images("timm", str(tmp_path / "weights.safetensors"), tmp_path / "run")
    stem = load_model(tmp_path / "run").stem.first.convolution.weight
    assert stem.dtype == torch.float32 and torch.equal(stem, theirs["conv1.weight"].float())


# --- what lies beside the weights


def timm_folder(folder, kind: str, **changes) -> None:
    folder.mkdir(exist_ok=True)
    save_file(weights(kind, "timm"), folder / "model.safetensors")
    told = {"input_size": [3, 16, 24], "crop_pct": 0.9, "interpolation": "bilinear", "mean": [0.1, 0.2, 0.3]}
    config = {"pretrained_cfg": {**told, "std": [0.4, 0.5, 0.6], **changes}, "model_args": {"num_heads": 3}}
    (folder / "config.json").write_text(json.dumps({**config, "label_names": ["ant", "bee", "ant"]}))


def test_a_folder_of_timm_tells_all(tmp_path):
    timm_folder(tmp_path / "theirs", "vit")
    lines = import_images("timm", str(tmp_path / "theirs"), tmp_path / "run")
    assert load_model(tmp_path / "run").config == CONFIGS["vit"]
    codec = ImageCodec.load(tmp_path / "run" / "codec")
    prepare = codec.preprocess
    assert (prepare.size, prepare.mean, prepare.std) == ((16, 24), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert prepare.interpolation == "bilinear" and [int(side / prepare.crop) for side in prepare.size] == [17, 26]
    assert codec.classes == ("ant", "bee", "ant (2)") and "no file beside" not in lines[1]


def test_a_folder_of_timm_that_crops_in_another_way(tmp_path):
    timm_folder(tmp_path / "theirs", "vit", crop_mode="border")
    with pytest.raises(RunError, match=r"theirs: config.json says crop_mode = 'border'; expected center or squash"):
        import_images("timm", str(tmp_path / "theirs"), tmp_path / "run")


@pytest.mark.parametrize("kind", ["vit", "swin", "mixer", "resnet"])
def test_what_is_exported_for_timm_is_imported_again(kind, tmp_path):
    run = run_of(kind, tmp_path / "run", prepare=Preprocess((16, 24) if kind == "vit" else (16, 16), 0.8, **IMAGENET))
    export_images(run, tmp_path / "theirs", "timm")
    import_images("timm", str(tmp_path / "theirs"), tmp_path / "again")
    assert load_model(run).config == load_model(tmp_path / "again").config
    assert ImageCodec.load(run / "codec") == ImageCodec.load(tmp_path / "again" / "codec")


@pytest.mark.parametrize(
    "prepare",
    [
        Preprocess((14, 14), 0.875, **IMAGENET),
        Preprocess((224, 224), 224 / 232, interpolation="bilinear"),
        Preprocess((16, 24), interpolation="bilinear", stretch=True),
        Preprocess((24, 24), 0.75, stretch=True),
    ],
    ids=str,
)
def test_pictures_are_prepared_as_transformers_does(prepare):
    transformers = pytest.importorskip("transformers")
    told = hf_preprocessor(prepare)
    assert hf_preprocess(told) == prepare
    theirs = getattr(transformers, told["image_processor_type"] + "Pil")(**told)
    pixels = (tensor(0, 70, 50, 3) * 60 + 128).clamp(0, 255).byte().numpy()
    pixels = np.array(Image.fromarray(pixels).resize((90, 61)))
    wanted = theirs(Image.fromarray(pixels), return_tensors="pt")["pixel_values"][0]
    # Ours crops and resizes in one step, which rounds 8-bit pixels once instead of twice. (Where an odd number of
    # pixels is cut off, transformers leaves the larger part on the right; ours does as torchvision and timm.)
    assert ((prepare(pixels) - wanted) * 255 * torch.tensor(prepare.std)[:, None, None]).abs().max() < 1.01


def test_large_pictures_of_convolutional_networks_are_stretched():
    told = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}, "crop_pct": 0.875,
            "resample": 3, "image_mean": [0, 0, 0], "image_std": [1, 1, 1]}  # fmt: skip
    small, large = hf_preprocess(told), hf_preprocess({**told, "size": {"shortest_edge": 384}})
    assert (small.size, small.crop, small.stretch) == ((224, 224), 0.875, False)
    assert (large.size, large.crop, large.stretch) == ((384, 384), 1.0, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"do_resize": False}, "does not resize"),
        ({"rescale_factor": 1.0}, "rescale_factor = 1.0; expected 1/255"),
        ({"size": {"shortest_edge": 32}}, "pictures of several shapes"),
        ({"do_center_crop": True, "crop_size": {"height": 20, "width": 32}}, "not the same share"),
    ],
)
def test_pictures_that_are_prepared_otherwise_are_refused(change, message):
    with pytest.raises(RunError, match=message):
        hf_preprocess({**hf_preprocessor(Preprocess((32, 32), stretch=True)), **change})


def hf_folder(tmp_path, kind: str = "vit", **changes):
    export_images(run_of(kind, tmp_path / "own", prepare=Preprocess((16, 16))), tmp_path / "theirs", "hf")
    file = tmp_path / "theirs" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return tmp_path / "theirs"


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("vit", {"hidden_act": "relu"}, "hidden_act = relu, which ours does not do; expected gelu"),
        ("vit", {"hidden_size": 24}, "hidden_size = 24, and the weights say 12"),
        ("vit", {"num_attention_heads": 5}, "cannot be shared evenly"),
        ("vit", {"image_size": 64}, "there are 6 patches, which an image of 64 x 64"),
        ("swin", {"use_absolute_embeddings": True}, "use_absolute_embeddings = True"),
        ("swin", {"layer_norm_eps": 1e-6}, "for some norms only"),
        ("resnet", {"downsample_in_bottleneck": True}, "downsample_in_bottleneck = True"),
    ],
)
def test_a_model_of_hugging_face_that_is_not_ours_is_refused(kind, change, message, tmp_path):
    folder = hf_folder(tmp_path, kind, **change)
    with pytest.raises(RunError, match=f"theirs: .*{message}"):
        import_hf(str(folder), tmp_path / "run")


def test_a_model_of_hugging_face_without_a_head(tmp_path):
    folder = hf_folder(tmp_path)
    theirs = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("vit."): tensor for name, tensor in theirs.items() if "classifier" not in name}
    save_file({**bare, "pooler.dense.weight": torch.zeros(12, 12)}, folder / "model.safetensors")
    with pytest.raises(RunError, match=r"the weights have no head. Say what to tell apart: --classes"):
        import_hf(str(folder), tmp_path / "run")
    lines = import_hf(str(folder), tmp_path / "run", classes="4")
    loaded = len(load_model(tmp_path / "run").state_dict()) - 2
    assert lines[2:] == [
        "left out: pooler.dense.weight, which no class is read from",
        f"new, to be learned: head.output.weight, head.output.bias; the other {loaded} tensors are loaded",
    ]


# --- classes


def test_classes_by_number_or_by_name(tmp_path):
    save_file(weights("resnet", "timm"), tmp_path / "weights.safetensors")
    named, more = tmp_path / "named.txt", tmp_path / "more.txt"
    named.write_text("\ufeffcat\ndog\n고양이\n\n", encoding="utf-8")
    more.write_text("a\nb\nc\nd\n")
    for number, (classes, wanted, new) in enumerate([
        (None, ("class 0", "class 1", "class 2"), False),
        ("3", ("class 0", "class 1", "class 2"), False),
        (str(named), ("cat", "dog", "고양이"), False),
        (str(more), ("a", "b", "c", "d"), True),
        ("2", ("class 0", "class 1"), True),
    ]):  # fmt: skip
        run = tmp_path / f"run{number}"
        lines = import_images("timm", str(tmp_path / "weights.safetensors"), run, classes=classes)
        assert ImageCodec.load(run / "codec").classes == wanted
        assert lines[-1].startswith("new, to be learned: head.output.weight, head.output.bias; the other ") == new


@pytest.mark.parametrize(
    ("text", "message"),
    [("cat\n\ndog\n", r"names.txt:2: an empty line"), ("a\nb\na\n", r"names.txt:3: the class 'a' a second time"),
     ("\n", "is empty"), ("0", None)],
)  # fmt: skip
def test_wrong_classes(text, message, tmp_path):
    save_file(weights("resnet", "timm"), tmp_path / "weights.safetensors")
    (tmp_path / "names.txt").write_text(text)
    classes = str(tmp_path / "names.txt") if message else text
    with pytest.raises((RunError, ConfigError), match=message or "--classes is 0; expected 1 or more"):
        import_images("timm", str(tmp_path / "weights.safetensors"), tmp_path / "run", classes=classes)


# --- what is refused


@pytest.mark.parametrize(
    ("origin", "kind", "change", "options", "message"),
    [
        ("timm", "vit", {}, {}, "how many heads a ViT of width 12 has cannot be seen in its weights. Give --heads"),
        ("timm", "vit", {}, {"heads": 3}, "there are 6 patches, which an image of 16 x 16 .* --image 224x288"),
        ("timm", "vit", {}, {"heads": 3, "image": "16x24"}, "how pixels were scaled, .* --scaling half"),
        ("timm", "vit", {"blocks.0.ls1.gamma": (12,)}, HALF_VIT, r"\(layer scale\), as 'blocks.0.ls1.gamma' says"),
        ("timm", "vit", {"blocks.0.attn.q_norm.weight": (4,)}, HALF_VIT, "norms queries and keys"),
        ("timm", "vit", {"reg_token": (1, 2, 12)}, HALF_VIT, "has registers with positions"),
        ("timm", "vit", {"more": (1,)}, HALF_VIT, "unknown more"),
        ("timm", "vit", {"pos_embed": None}, HALF_VIT, "missing what we call 'patches.position.table'"),
        ("timm", "vit", {"blocks.1.norm2.bias": None}, HALF_VIT, "has no 'blocks.1.feed_forward_residual.norm.bias'"),
        ("timm", "vit", {}, {"image": "16 by 24"}, "--image is '16 by 24'; expected height and width"),
        ("timm", "vit", {}, {"scaling": "imagnet"}, "--scaling is 'imagnet'. Did you mean 'imagenet'"),
        ("torchvision", "resnet", {"conv1.weight": None}, {}, "missing what we call 'stem.first.convolution.weight'"),
        ("torchvision", "resnet", {"layer1.0.se.fc.weight": (1,)}, {}, "squeeze and excitation"),
    ],
)  # fmt: skip
def test_weights_that_are_refused(origin, kind, change, options, message, tmp_path):
    theirs = weights(kind, origin)
    for name, shape in change.items():
        if shape is None:
            del theirs[name]
        else:
            theirs[name] = torch.zeros(shape)
    save_file(theirs, tmp_path / "weights.safetensors")
    with pytest.raises((RunError, ConfigError), match=message):
        import_images(origin, str(tmp_path / "weights.safetensors"), tmp_path / "run", **options)
    assert not (tmp_path / "run" / "model.json").exists()


def test_positions_of_patches_only(tmp_path):
    theirs = weights("vit", "timm", replace(CONFIGS["vit"], image=(16, 16)))
    theirs["pos_embed"] = theirs["pos_embed"][:, 1:]
    save_file(theirs, tmp_path / "weights.safetensors")
    with pytest.raises(RunError, match="its first tokens have no position; expected a position for each"):
        import_images("timm", str(tmp_path / "weights.safetensors"), tmp_path / "run", heads=3, scaling="half")


def test_names_of_another_origin_or_of_no_one(tmp_path):
    save_file(weights("vit", "torchvision"), tmp_path / "theirs.safetensors")
    with pytest.raises(RunError, match=r"these are the names of torchvision. Import it as torchvision:..."):
        import_images("timm", str(tmp_path / "theirs.safetensors"), tmp_path / "run", **HALF_VIT)
    save_file({"one": torch.zeros(1), "two": torch.zeros(1)}, tmp_path / "unknown.safetensors")
    with pytest.raises(RunError, match="no image model is known whose weights are called one, two"):
        import_images("timm", str(tmp_path / "unknown.safetensors"), tmp_path / "run")


def test_a_hub_name_that_cannot_be_reached(tmp_path, monkeypatch):
    import huggingface_hub

    def offline(name, **_):
        raise huggingface_hub.errors.LocalEntryNotFoundError(f"no connection for {name}")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    for published, name in [("timm:vit_tiny", "timm/vit_tiny"), ("hf:google/vit", "google/vit")]:
        with pytest.raises(
            RunError, match=rf"no folder {name}, and the Hugging Face hub cannot be reached \(no connect"
        ):
            import_published(published, tmp_path / "run")


def test_what_comes_as_a_package_is_imported_as_it_is(tmp_path):
    with pytest.raises(ConfigError, match="--classes is not for efficientnet-lite0"):
        import_published("efficientnet-lite0", tmp_path / "run", classes="3", image=None)


def test_a_folder_that_holds_a_model_is_left_alone(tmp_path):
    run_of("resnet", tmp_path / "run")
    save_file(weights("resnet", "timm"), tmp_path / "weights.safetensors")
    with pytest.raises(RunError, match=r"run: holds a model already. Choose another folder"):
        import_images("timm", str(tmp_path / "weights.safetensors"), tmp_path / "run")


@pytest.mark.parametrize(
    ("kind", "changes", "labels", "to", "message"),
    [
        ("vit", {"pool": "mean"}, "class", "hf", "hf has no such vit: its head reads the mean of all patches"),
        ("vit", {"pool": "attention"}, "class", "timm", "timm has no such vit: it pools by attention"),
        ("vit", {"registers": 2}, "class", "timm", "it has registers"),
        ("vit", {"distilled": True}, "class", "torchvision", "it has a distillation token"),
        ("vit", {"prelogits": 5}, "class", "hf", "its head has a hidden layer"),
        ("resnet", {"stem": "small"}, "class", "torchvision", "its stem is small and its shortcuts are projected"),
        ("mixer", {}, "class", "hf", "no names of 'hf' are known for a Mixer"),
        ("resnet", {}, "number", "timm", "it says numbers, which only our codec scales"),
        ("resnet", {}, "class", "tim", "--to is 'tim'. Did you mean 'timm'"),
        ("resnet", {}, "class", None, "--to is missing"),
    ],
)
def test_what_others_cannot_have_is_not_exported(kind, changes, labels, to, message, tmp_path):
    run = run_of(kind, tmp_path / "run", replace(CONFIGS[kind], **changes), labels=labels)
    with pytest.raises((RunError, ConfigError), match=message):
        export_run(run, tmp_path / "out.safetensors", to)
    assert not (tmp_path / "out.safetensors").exists()


def test_pictures_that_hugging_face_cannot_cut(tmp_path):
    run = run_of("swin", tmp_path / "run", prepare=Preprocess((16, 24)))
    with pytest.raises(RunError, match="no processor that keeps a picture's shape and cuts a rectangle"):
        export_images(run, tmp_path / "out", "hf")
    assert not (tmp_path / "out").exists()


# --- the command


def test_the_command_imports_and_exports(tmp_path, capsys):
    config = ResNetConfig(10, **ResNet.SIZES["20"])
    torch.save({"state_dict": weights("resnet", "cifar", config)}, tmp_path / "resnet20.th")
    assert main(["import", f"cifar:{tmp_path}/resnet20.th", "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert "a ResNet by cifar's names, 0.3 million weights, 10 classes" in told
    assert told.endswith(f"next: qkv classify {tmp_path / 'run'} photo.jpg\n")
    assert family(tmp_path / "run") == "classify pictures"
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "back.safetensors")]) == 0
    back = load_file(tmp_path / "back.safetensors")
    theirs = weights("resnet", "cifar", config)
    assert back.keys() == theirs.keys() and all(torch.equal(back[name], theirs[name]) for name in back)


def test_the_command_refuses_in_one_sentence(tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "opus").mkdir()
    (tmp_path / "opus" / "config.json").write_text('{"model_type": "marian"}')
    for words, message in [
        ([f"hf:{tmp_path}/other"], "a model of the type 'llama'; expected marian"),
        ([f"hf:{tmp_path}/opus", "--heads", "3"], "--heads is not for a marian model"),
        (["tim:x"], "published weights of 'tim'. Did you mean 'timm'"),
        (["torchvision:nowhere.pth"], "nowhere.pth: there is no such file"),
    ]:
        assert main(["import", *words, "--out", str(tmp_path / "run")]) == 2
        assert message in capsys.readouterr().err
