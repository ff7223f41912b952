"""Looking at how a run that reads pictures answered one: its maps, their rollouts, and what each class hangs on."""

import base64
import fnmatch
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, nn

from qkv.axis import Grid
from qkv.data.pictures import decode
from qkv.data.preprocess import Preprocess, resize
from qkv.errors import ConfigError, nearest
from qkv.layers.attention import Attention
from qkv.layers.mixing import TokenMixing
from qkv.look.cells import reading
from qkv.look.class_maps import class_rollout, grad_cam, picture_rollout, pixel_gradient, read_shares
from qkv.look.patches import SAMPLES, patch_faithfulness
from qkv.look.record import Map, Trace
from qkv.look.rollout import stacks
from qkv.look.trace import bias_maps, no_attention, position_maps, trace

__all__ = ["look_at"]

SHOWN = 448  # pixels of the longer side of the picture in the record, where it has as many
INSTEAD = "Shown is what its answer hangs on: maps of the classes, by Grad-CAM and by the gradient at each pixel."
MIXES = (
    "Shown is how it mixes its patches, row by row of its matrices, and what its answer hangs on: maps of the classes."
)
NUMBER = "value"  # what the one output of a regression is called


def look_at(
    classifier: Any,
    picture: Path | str | bytes | UInt8[np.ndarray, "row column 3"],
    *,
    layers: str | Sequence[str] = "*",
    heads: Sequence[int] | None = None,
    classes: Sequence[str] = (),
    top: int = 3,
    rollout: str = "mean",
    residual: float = 0.5,
    discard: float = 0.0,
    size: tuple[int, int] | None = None,
    faithful: bool = False,
    by: str | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Trace:
    """What a model looked at while it answered a picture; the trace's notes hold the picture and the answer.

    Args:
        classifier: an opened run: ``model``, ``codec`` (an `ImageCodec`) and ``device`` are used.
        picture: a file, its bytes, or its pixels.
        layers: names of the layers whose maps are kept, ``*`` matching anything; what comes of them is kept always.
        heads: only these heads are kept.
        classes: explain these classes, the first of them above all; else those that the model finds likeliest.
        top: how many of the likeliest.
        rollout, residual, discard: how heads are fused, a position's own share, and the share of weights left out:
            see `qkv.look.rollout.rollout`. ``rollout="none"`` leaves it out.
        size: height and width to read the picture at, instead of the run's own.
        faithful: also measure whether the answer hangs on what ``by`` points at (see `qkv.look.patches`).
        by: ``rollout``, ``gradient-rollout``, ``grad-cam``, ``gradient`` or the name of a layer; the rollout if there
            is one, else Grad-CAM.
        samples, seed: random orders to compare with.
    """
    model, codec, preprocess = classifier.model, classifier.codec, classifier.codec.preprocess
    if size is not None:
        preprocess = replace(preprocess, size=tuple(size))
    pixels = picture if isinstance(picture, np.ndarray) else decode(picture).pixels
    image = preprocess(pixels)[None].to(classifier.device)
    axes = model.axes(image)
    grids = [axis[0] for axis in axes.values() if isinstance(axis[0], Grid)]

    whole = Trace()
    if any(isinstance(module, (Attention, TokenMixing)) for module in model.modules()):
        with torch.no_grad(), trace(model, axes=axes) as whole:
            outputs = model(image)[0]
        tables = {**position_maps(model, axes).maps, **bias_maps(model).maps}
        seen = _kept(Trace({**whole.maps, **tables}), layers, heads)
    else:
        with torch.no_grad():
            outputs = model(image)[0]
        seen = Trace()
    if not any(map.kind in ("self", "cross") for map in whole.select()):
        seen.notes["remark"] = no_attention({"heads": heads}, MIXES if whole.maps else INSTEAD)

    names = _names(codec, outputs, classes, top)
    if whole.maps and rollout != "none" and stacks(whole):
        row, rolled = picture_rollout(model, whole, residual, rollout, discard)
        explained = [*rolled, row, class_rollout(model, image, names, whole)]
    else:
        explained = []
    explained += [grad_cam(model, image, names, grids[-1]), pixel_gradient(model, image, names, grids[0])]
    seen.maps.update({map.name: [map] for map in explained})
    seen.notes.update(
        shows="picture",
        run=str(getattr(classifier, "folder", "") or ""),
        picture=_picture(picture, pixels, preprocess),
        answer=_answer(codec, outputs, names),
        reads=[grids[-1].prefix[i] for i in read_shares(model, grids[-1]).nonzero()[:, 0] if i < len(grids[-1].prefix)],
        rollout={"fusion": rollout, "residual": residual, "discard": discard},
    )
    if faithful:
        orders = _importance(Trace({**whole.maps, **seen.maps}), by)
        found = patch_faithfulness(_score(model, codec, outputs, names), image, orders, samples=samples, seed=seed)
        seen.notes["faithfulness"] = found.note()
    return seen


def _kept(whole: Trace, layers: str | Sequence[str], heads: Sequence[int] | None) -> Trace:
    """The maps asked for; heads are those of the layers that look."""
    patterns = [layers] if isinstance(layers, str) else list(layers)
    kept = {n: maps for n, maps in whole.items() if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns)}
    if not kept:
        raise ConfigError(f"no layer matches {layers!r}", remedy=f"layers here: {', '.join(whole)}")
    return Trace({name: [_of_heads(map, heads) for map in maps] for name, maps in kept.items()})


def _of_heads(map: Map, heads: Sequence[int] | None) -> Map:
    if heads is None or map.kind not in ("self", "cross"):
        return map
    if bad := [head for head in heads if head not in map.heads]:
        raise ConfigError(f"{map.name} has no head {bad[0]}", expected=f"0 to {len(map.heads) - 1}")
    rows = sorted(set(heads))
    return replace(map, weights=map.weights[rows], heads=tuple(rows))


def _names(codec: Any, outputs: Float[Tensor, " output"], classes: str | Sequence[str], top: int) -> dict[str, int]:
    """The outputs that are explained, by name."""
    if codec.labels == "number":
        return {NUMBER: 0}
    classes = [classes] if isinstance(classes, str) else classes
    for name in classes:
        if name not in codec.classes:
            raise ConfigError(f"there is no class {name!r}", remedy=nearest(name, codec.classes))
    likely = outputs.topk(min(top, len(codec.classes))).indices.tolist()
    return {codec.classes[i]: i for i in dict.fromkeys([*(codec.classes.index(name) for name in classes), *likely])}


def _shares(codec: Any, outputs: Float[Tensor, "*batch output"]) -> Float[Tensor, "*batch output"]:
    """Probabilities of the classes: of one another's, or each for itself where a picture may have several."""
    return outputs.float().sigmoid() if codec.labels == "several" else outputs.float().softmax(-1)


def _answer(codec: Any, outputs: Float[Tensor, " output"], names: dict[str, int]) -> dict:
    """What the model said, as plain data: ``labels``, and a ``value``, or the ``top`` classes and those explained."""
    if codec.labels == "number":
        return {"labels": "number", "value": codec.decode(outputs[None].cpu())[0], "explained": list(names)}
    shares = _shares(codec, outputs)
    places = dict.fromkeys([*shares.topk(min(5, len(shares))).indices.tolist(), *names.values()])
    likely = sorted(places, key=lambda i: -float(shares[i]))
    top = [{"name": codec.classes[i], "probability": round(float(shares[i]), 6)} for i in likely]
    return {"labels": codec.labels, "top": top, "explained": list(names)}


def _score(model: nn.Module, codec: Any, outputs: Float[Tensor, " output"], names: dict[str, int]):
    """Of a batch of images: the probability of the first class explained; of numbers, how near they stay."""
    output = next(iter(names.values()))

    def score(images: Tensor) -> Tensor:
        with torch.inference_mode():
            given = model(images)
        if codec.labels == "number":
            return -(given[:, output] - outputs[output]).float().abs()
        return _shares(codec, given)[:, output]

    return score


def _importance(seen: Trace, by: str | None) -> dict[str, tuple[Float[Tensor, " cell"], Grid]]:
    """A row for each explanation, the one that is judged first; of an explanation by class the first class's."""
    rows = {}
    for map in seen.select():
        if map.kind == "gradient" or map.name == "rollout":
            rows[map.name] = (map.weights[0, 0], map.key)
    by = by or next(iter(rows))
    if by not in rows:
        if by not in seen or not isinstance(seen[by][0].key, Grid) or seen[by][0].kind not in ("self", "cross"):
            layers = [map.name for map in seen.select() if map.kind in ("self", "cross") and map.name != "rollout"]
            raise ConfigError(f"no map is called {by!r}", remedy=nearest(by, [*rows, *layers]))
        rows[by] = (reading(seen[by][0]).mean(0), seen[by][0].key)
    return {
        name: (rows[name][0][len(rows[name][1].prefix) :], replace(rows[name][1], prefix=()))
        for name in dict.fromkeys([by, *rows])
    }


def _picture(source: Any, pixels: UInt8[np.ndarray, "row column 3"], preprocess: Preprocess) -> dict:
    """What the model read, as a PNG in base64, larger where the file has more: maps are laid over it as it is."""
    rows, columns = preprocess.size
    left, top, right, bottom = region = preprocess.region(*pixels.shape[:2])
    larger = max(1.0, min((bottom - top) / rows, (right - left) / columns, SHOWN / max(rows, columns)))
    if larger > 1:
        size = (round(rows * larger), round(columns * larger))
        shown = resize(pixels, size, region, preprocess.interpolation, preprocess.antialias)
    else:
        shown = preprocess.shown(pixels)
    file = io.BytesIO()
    Image.fromarray(shown).save(file, "PNG")
    return {
        "name": Path(source).name if isinstance(source, (str, Path)) else "",
        "png": base64.b64encode(file.getvalue()).decode(),
        "size": [rows, columns],
        "region": [round(float(side), 3) for side in region],
        "file_size": list(pixels.shape[:2]),
    }
