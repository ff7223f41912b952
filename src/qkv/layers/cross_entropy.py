"""Output layer and loss in one: the logits of a whole batch never exist at once."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["linear_cross_entropy", "word_log_probabilities"]


def linear_cross_entropy(
    states: Float[Tensor, "target dim"],
    weight: Float[Tensor, "word dim"],
    bias: Float[Tensor, "word"] | None,
    targets: Int[Tensor, "target"],
    smoothing: float = 0.0,
    chunk: int | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Int[Tensor, ""]]:
    """``(loss, nll, correct)`` of the words that ``states @ weight.T + bias`` predicts, each **summed** over targets.

    The loss is the cross entropy against (1 - smoothing) on the target and smoothing / words on *every* word, the
    target and the padding word among them (Szegedy et al. 2016, section 7; as in ``torch.nn.functional``). ``nll`` is
    the same without smoothing; ``correct`` counts the targets that were the likeliest word. Only ``loss`` learns.

    Logits are made ``chunk`` targets at a time (about a million numbers if not given) and turned into their own
    gradient while they are still in the cache: memory is that of a chunk, not of the batch, and the backward pass is a
    multiplication.
    """
    chunk = chunk or max(64, 2**20 // weight.shape[0])
    if not torch.is_grad_enabled():  # which `forward` below cannot know, and would make gradients for nobody
        states, weight, bias = states.detach(), weight.detach(), None if bias is None else bias.detach()
    return _LinearCrossEntropy.apply(states, weight, bias, targets, smoothing, chunk)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, states, weight, bias, targets, smoothing, chunk):
        learn = any(ctx.needs_input_grad[:3])
        words = weight.shape[0]
        if torch.is_autocast_enabled(states.device.type):
            dtype = torch.get_autocast_dtype(states.device.type)
            cast_states, cast_weight = states.to(dtype), weight.to(dtype)
        else:
            cast_states, cast_weight = states, weight
        total = states.dtype if states.dtype == torch.float64 else torch.float32
        loss = torch.zeros((), dtype=total, device=states.device)
        nll, correct = torch.zeros_like(loss), torch.zeros((), dtype=torch.long, device=states.device)
        d_states = torch.empty_like(states) if learn else None
        d_weight = torch.zeros_like(weight) if learn else None
        d_bias = torch.zeros_like(bias) if learn and bias is not None else None
        mean_weight = weight.to(total).mean(0)  # the smoothing's share is uniform: it needs the mean logit only
        mean_bias = bias.to(total).mean() if bias is not None else 0.0
        for begin in range(0, len(targets), chunk):
            rows = slice(begin, begin + chunk)
            target = targets[rows, None]
            logits = (cast_states[rows] @ cast_weight.T).to(total)
            if bias is not None:
                logits += bias
            best, likeliest = logits.max(-1, keepdim=True)
            of_target = logits.gather(1, target)
            chance = logits.softmax(-1)
            # The likeliest word's chance is at least 1/words, so its logarithm is safe, whatever the target's is.
            log_sum = best - chance.gather(1, likeliest).log()
            mean_logit = (states[rows].to(total) @ mean_weight + mean_bias).sum()
            nll += (log_sum - of_target).sum()
            loss += (log_sum - (1 - smoothing) * of_target).sum() - smoothing * mean_logit
            correct += (likeliest == target).sum()
            if learn:
                chance.scatter_add_(1, target, torch.full_like(of_target, smoothing - 1))
                error = chance.to(cast_states.dtype)
                d_states[rows] = torch.addmm(mean_weight.to(error.dtype), error, cast_weight, beta=-smoothing)
                if error.dtype == weight.dtype:
                    d_weight.addmm_(error.T, cast_states[rows])
                else:
                    d_weight.add_(error.T @ cast_states[rows])
                if d_bias is not None:
                    d_bias += chance.sum(0)
        if learn:
            d_weight -= smoothing / words * states.to(weight.dtype).sum(0)
            if d_bias is not None:
                d_bias -= smoothing / words * len(targets)
        ctx.save_for_backward(d_states, d_weight, d_bias)
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    @once_differentiable
    def backward(ctx, d_loss, *_):
        scaled = (None if saved is None else saved * d_loss.to(saved.dtype) for saved in ctx.saved_tensors)
        return *scaled, None, None, None


def word_log_probabilities(
    states: Float[Tensor, "batch target dim"], output: torch.nn.Linear, words: Int[Tensor, "batch target"]
) -> Float[Tensor, "batch target"]:
    """The log-probability of each given word; made example by example, so that memory is that of one text's logits."""
    found = []
    for state, word in zip(states, words, strict=True):
        logits = output(state).float()
        found.append(logits.gather(-1, word[:, None])[:, 0] - logits.logsumexp(-1))
    return torch.stack(found)
