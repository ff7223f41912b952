"""A tiny published translator: a random MarianMTModel with SentencePiece files, as a folder."""

import io
import random

import torch
from sentencepiece import SentencePieceTrainer

SYLLABLES = {
    "source": [*"가나다라마바사아자차카타파하한글</>p"],
    "target": ["ba", "be", "bi", "do", "du", "fa", "go", "ki", "lo", "mu", "na", "po", "ra", "su", "ti", *"</>s"],
}


def sentences(side: str, count: int = 1500, seed: int = 0) -> list[str]:
    """Lines of made-up words; half of all words come from a short list, so that there are pieces to learn."""
    chance = random.Random(f"{side} {seed}")
    common = ["".join(chance.choices(SYLLABLES[side], k=chance.randint(1, 4))) for _ in range(60)]

    def word() -> str:
        return chance.choice(common) if chance.random() < 0.5 else "".join(chance.choices(SYLLABLES[side], k=3))

    return [" ".join(word() for _ in range(chance.randint(1, 12))) for _ in range(count)]


def learn_pieces(side: str, words: int = 120) -> bytes:
    """A SentencePiece model as Marian's training makes it: unigram, NFKC, ``</s>`` and ``<unk>`` inside."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(side)), model_writer=model, vocab_size=words, model_type="unigram",
        normalization_rule_name="nmt_nfkc", hard_vocab_limit=False, unk_id=1, eos_id=0, bos_id=-1, pad_id=-1,
        minloglevel=2,
    )  # fmt: skip
    return model.getvalue()


def randomise(model: torch.nn.Module, seed: int) -> None:
    """Every weight, norm and bias away from its neutral start, so that a slip in any of them shows."""
    torch.manual_seed(seed)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if "embed_positions" in name:
            continue
        with torch.no_grad():
            noise = torch.randn_like(tensor)
            if "norm" in name and name.endswith("weight"):
                tensor.copy_(1 + 0.3 * noise)
            elif tensor.dim() == 2 and tensor.shape[0] > 1:
                # Words weigh much and the source little, so that each word leads to another one.
                size = 4.0 if "layers" not in name else 0.4 if "decoder" in name and "out_proj" in name else 1.2
                tensor.copy_(noise * size * tensor.shape[1] ** -0.5)
            else:
                tensor.copy_(noise * 0.3)
    # A random model says one word for ever. Without what it says on average, what it says depends on what it reads.
    words = torch.randint(0, len(model.final_logits_bias[0]), (32, 12))
    with torch.inference_mode():
        usual = model(input_ids=words, decoder_input_ids=words.flip(0)).logits.mean((0, 1))
    model.final_logits_bias.copy_(model.final_logits_bias - usual)


def tiny_marian(seed: int = 0, words: int = 90, target_words: int | None = None, **changes):
    """A random MarianMTModel in evaluation mode; the padding word, which starts outputs too, is the last one."""
    from transformers import MarianConfig, MarianMTModel

    settings = dict(
        vocab_size=words, decoder_vocab_size=target_words or words, d_model=32, encoder_layers=2, decoder_layers=3,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
        scale_embedding=True, activation_function="swish",
        pad_token_id=words - 1, decoder_start_token_id=words - 1, eos_token_id=0,
        forced_eos_token_id=None, max_position_embeddings=512, static_position_embeddings=True, normalize_before=False,
        share_encoder_decoder_embeddings=target_words is None, attn_implementation="eager", dropout=0.1,
    )  # fmt: skip
    model = MarianMTModel(MarianConfig(**{**settings, **changes})).eval()
    randomise(model, seed)
    model.generation_config.bad_words_ids = [[model.config.pad_token_id]]
    model.generation_config.num_beams = 4
    model.generation_config.length_penalty = 1.0
    model.generation_config.max_length = 60
    return model
