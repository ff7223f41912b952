"""What the outputs of a classifier mean."""

from jaxtyping import Float
from torch import Tensor

from qkv.data.targets import Targets

__all__ = ["probabilities"]


def probabilities(logits: Float[Tensor, "text output"], targets: Targets) -> Float[Tensor, "text output"]:
    """Chances of classes: together 1, or with several labels each for itself; a number is as it is."""
    match targets.labels:
        case "class":
            return logits.float().softmax(1)
        case "several":
            return logits.float().sigmoid()
    return logits.float()
