"""``qkv export``: a run in a published format."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv export runs/opus opus-again      # transformers.MarianMTModel.from_pretrained("opus-again") loads it
  qkv export runs/bert bert-again      # AutoModel.from_pretrained("bert-again") loads it; DistilBERT likewise
  qkv export runs/minilm minilm-again  # sentence_transformers.SentenceTransformer("minilm-again") loads it
  qkv export runs/vit --to hf --out birds     # AutoModelForImageClassification.from_pretrained("birds") loads it
  qkv export runs/vit --to timm --out birds   # timm.create_model("local-dir:birds", pretrained=True) loads it
  qkv export runs/vit --to torchvision --out vit.safetensors
"""


def export(run: Path, out: Path, *, to: str | None = None) -> None:
    """Write a run (imported, fine-tuned or your own) as others publish theirs.

    Args:
        run: the folder of a run of pictures; of BERT, DistilBERT or a sentence encoder, pretrained or fine-tuned to
            classify, regress or tag; or of a translator whose vocabulary is of SentencePiece.
        out: the folder to write, or a file of weights alone (.safetensors; .npz for the original release's names).
        to: whose names: timm, torchvision, hf, npz or cifar; those that the run came with if not given;
            texts have hf's only.
    """
    from qkv.weights.published import export_run

    export_run(run, out, to)
    print(f"wrote {out}")


def main(argv: Sequence[str]) -> int:
    run_verb(export, "export", argv, EXAMPLES)
    return 0
