"""GloVe's inner loop in compiled code: the update of `qkv.models.glove` by AdaGrad (Duchi et al. 2011).

Threads write to the tables without locks, as those of `qkv.kernels.word2vec`.
"""

import math

import numpy as np
from numba import float32, njit

__all__ = ["LONGEST", "fresh_sums", "sweep"]

LONGEST = float32(100)  # a single gradient's largest number: one bad pair never throws the others out


@njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
def _update(w, c, tables, sums, log_count, weight, rate):
    """One direction of a pair. Returns its loss (half the weighted square)."""
    input, output, input_bias, output_bias = tables
    input_sum, output_sum, input_bias_sum, output_bias_sum = sums
    width = input.shape[1]
    dot = float32(0)
    for d in range(width):
        dot += input[w, d] * output[c, d]
    error = dot + input_bias[w, 0] + output_bias[c, 0] - log_count
    pull = weight * error
    pull = min(max(pull, -LONGEST), LONGEST)
    for d in range(width):
        g, h = pull * output[c, d], pull * input[w, d]
        g, h = min(max(g, -LONGEST), LONGEST), min(max(h, -LONGEST), LONGEST)
        input[w, d] -= rate * g / math.sqrt(input_sum[w, d])
        output[c, d] -= rate * h / math.sqrt(output_sum[c, d])
        input_sum[w, d] += g * g
        output_sum[c, d] += h * h
    input_bias[w, 0] -= rate * pull / math.sqrt(input_bias_sum[w, 0])
    output_bias[c, 0] -= rate * pull / math.sqrt(output_bias_sum[c, 0])
    input_bias_sum[w, 0] += pull * pull
    output_bias_sum[c, 0] += pull * pull
    return 0.5 * weight * error * error


@njit(nogil=True, error_model="numpy", cache=True)
def sweep(order, begin, end, lefts, rights, counts, both, tables, sums, rate, x_max, alpha):
    """Learn from the pairs ``order[begin:end]``. Returns (loss, pairs).

    Args:
        lefts, rights, counts: words, contexts and X of each pair.
        both: whether a pair counts in both directions (a symmetric window); a word with itself has one.
        tables: input, output, input_bias, output_bias.
        sums: of squared gradients, of the same shapes; they begin at 1, as in the published program.
    """
    loss, pairs = 0.0, 0
    for k in range(begin, end):
        i = order[k]
        w, c, x = lefts[i], rights[i], counts[i]
        log_count = float32(math.log(x))
        weight = float32(1) if x >= x_max else float32((x / x_max) ** alpha)  # eq. 9
        loss += _update(w, c, tables, sums, log_count, weight, rate)
        pairs += 1
        if both and w != c:
            loss += _update(c, w, tables, sums, log_count, weight, rate)
            pairs += 1
    return loss, pairs


def fresh_sums(tables: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """AdaGrad's sums at the beginning."""
    return tuple(np.ones_like(table) for table in tables)
