"""A residual network's weights under the names of others.

===============  ===============================================================================
origin           whose names
===============  ===============================================================================
``timm``         timm's ``ResNet``, which are torchvision's
``torchvision``  torchvision's ``ResNet``
``hf``           Hugging Face's ``ResNetForImageClassification``
``cifar``        the networks of 20 to 110 layers for CIFAR-10, saved from ``DataParallel``
===============  ===============================================================================
"""

from qkv.errors import RunError, nearest
from qkv.models.resnet import ResNetConfig
from qkv.weights.names import Counter, Layout, Rule, columns

__all__ = ["ORIGINS", "resnet"]

PLACES = ("first", "second", "third")


def resnet(origin: str, config: ResNetConfig) -> Layout:
    """Names of an origin, for a config.

    Raises:
        RunError: the origin is unknown.
    """
    if origin not in ORIGINS:
        raise RunError(f"no names of {origin!r} are known for a ResNet", remedy=nearest(origin, ORIGINS))
    return Layout(ORIGINS[origin](config))


def _torchvision(config: ResNetConfig, prefix: str = "", head: str = "fc") -> tuple[Rule, ...]:
    rules = [
        *columns(f"""
            stem.first.convolution.{{part}}   {prefix}conv1.{{part}}
            stem.first.norm.{{part}}          {prefix}bn1.{{part}}
            head.output.{{part}}              {prefix}{head}.{{part}}
        """)
    ]
    for stage in range(len(config.depths)):
        ours, theirs = f"stages.{stage}.{{block}}", f"{prefix}layer{stage + 1}.{{block}}"
        rules += columns(f"""
            {ours}.shortcut.convolution.{{part}}   {theirs}.downsample.0.{{part}}
            {ours}.shortcut.norm.{{part}}          {theirs}.downsample.1.{{part}}
        """)
        for number, place in enumerate(PLACES, 1):
            rules += columns(f"""
                {ours}.{place}.convolution.{{part}}   {theirs}.conv{number}.{{part}}
                {ours}.{place}.norm.{{part}}          {theirs}.bn{number}.{{part}}
            """)
    return tuple(rules)


def _hf(config: ResNetConfig) -> tuple[Rule, ...]:
    ours, theirs = "stages.{stage}.{block}", "resnet.encoder.stages.{stage}.layers.{block}"
    rules = [
        *columns(f"""
            stem.first.convolution.{{part}}        resnet.embedder.embedder.convolution.{{part}}
            stem.first.norm.{{part}}               resnet.embedder.embedder.normalization.{{part}}
            {ours}.shortcut.convolution.{{part}}   {theirs}.shortcut.convolution.{{part}}
            {ours}.shortcut.norm.{{part}}          {theirs}.shortcut.normalization.{{part}}
            head.output.{{part}}                   classifier.1.{{part}}
        """)
    ]
    for number, place in enumerate(PLACES):
        rules += columns(f"""
            {ours}.{place}.convolution.{{part}}   {theirs}.layer.{number}.convolution.{{part}}
            {ours}.{place}.norm.{{part}}          {theirs}.layer.{number}.normalization.{{part}}
        """)
    return tuple(rules)


def _cifar(config: ResNetConfig) -> tuple[Rule, ...]:
    norms = [("stem.first", "module.bn1")] + [
        (f"stages.{stage}.{{block}}.{place}", f"module.layer{stage + 1}.{{block}}.bn{number}")
        for stage in range(len(config.depths))
        for number, place in enumerate(PLACES, 1)
    ]
    counters = (
        Counter((f"{ours}.norm.running_mean", f"{ours}.norm.num_batches_tracked"), f"{theirs}.running_mean")
        for ours, theirs in norms
    )
    return *counters, *_torchvision(config, prefix="module.", head="linear")


ORIGINS = {"timm": _torchvision, "torchvision": _torchvision, "hf": _hf, "cifar": _cifar}
