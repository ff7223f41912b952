"""What batch normalisation lets through: change the last word of one sentence and watch every earlier position move.

The causal mask hides later words from attention, yet in training mode the batch's statistics carry them back in time
and over to other sentences. With layer normalisation, and in evaluation mode with either, nothing moves.
"""

import torch

from qkv.models.transformer import Transformer, TransformerConfig

for norm in ("layer", "batch"):
    for mode in ("train", "eval"):
        torch.manual_seed(0)
        config = TransformerConfig(
            40, 40, dim=32, encoder_depth=1, decoder_depth=1, heads=2, hidden=64, dropout=0, norm=norm
        )
        model = Transformer(config).train(mode == "train")
        source, lengths = torch.randint(3, 40, (2, 6)), torch.tensor([6, 6])
        target, target_lengths = torch.randint(3, 40, (2, 5)), torch.tensor([5, 5])
        changed = target.clone()
        changed[0, -1] = (changed[0, -1] + 1 - 3) % 37 + 3
        with torch.no_grad():
            moved = (
                model(source, lengths, target, target_lengths) - model(source, lengths, changed, target_lengths)
            ).abs()
        earlier, other = moved[0, :-1].max(), moved[1].max()
        print(f"{norm:5} norm, {mode:5} mode: earlier words move by {earlier:.1e}, the other sentence by {other:.1e}")
