"""An EfficientNet-Lite's weights under the names of others.

============  =================================================================================
origin        whose names
============  =================================================================================
``lukemelas`` ``efficientnet_pytorch`` and ``efficientnet_lite_pytorch``
============  =================================================================================
"""

from qkv.errors import RunError, nearest
from qkv.models.efficientnet import EfficientNetConfig
from qkv.weights.names import Layout, Rule, columns

__all__ = ["ORIGINS", "efficientnet"]


def efficientnet(origin: str, config: EfficientNetConfig) -> Layout:
    """Names of an origin, for a config.

    Raises:
        RunError: the origin is unknown.
    """
    if origin not in ORIGINS:
        raise RunError(f"no names of {origin!r} are known for an EfficientNet", remedy=nearest(origin, ORIGINS))
    return Layout(ORIGINS[origin](config))


def _lukemelas(config: EfficientNetConfig) -> tuple[Rule, ...]:
    return tuple(
        columns("""
            stem.convolution.{part}                         _conv_stem.{part}
            stem.norm.{part}                                _bn0.{part}
            blocks.{block}.expand.convolution.{part}        _blocks.{block}._expand_conv.{part}
            blocks.{block}.expand.norm.{part}               _blocks.{block}._bn0.{part}
            blocks.{block}.depthwise.convolution.{part}     _blocks.{block}._depthwise_conv.{part}
            blocks.{block}.depthwise.norm.{part}            _blocks.{block}._bn1.{part}
            blocks.{block}.project.convolution.{part}       _blocks.{block}._project_conv.{part}
            blocks.{block}.project.norm.{part}              _blocks.{block}._bn2.{part}
            last.convolution.{part}                         _conv_head.{part}
            last.norm.{part}                                _bn1.{part}
            head.output.{part}                              _fc.{part}
        """)
    )


ORIGINS = {"lukemelas": _lukemelas}
