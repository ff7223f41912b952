"""word2vec's inner loop in compiled code: the same update as `qkv.models.word2vec`, for plain gradient descent.

A thread goes over a range of the text. Of each centre word it gathers the vectors on both sides into two small tables
(contexts and outputs), and all dot products and both gradients are products of these: the outputs (the centre and its
negatives, or its path in the tree) are shared by the whole window (Ji et al. 2016, "Parallelizing Word2Vec in Shared
and Distributed Memory"), so that a row is fetched once a window and not once a pair. Which words are dropped and how
wide each window is depends on (seed, epoch, place in the text) alone; so it does not matter where a range begins.

Threads write to the tables without locks (Recht et al. 2011): one thread gives the same bits each time, several do not.
"""

import math

import numpy as np
from numba import float32, njit, uint32, uint64

__all__ = ["SKIPGRAM", "alias_table", "paths_of", "sigmoid", "step", "sweep"]

SKIPGRAM, MEAN, SUM, UNDIVIDED = 0, 1, 2, 3  # each context for itself; or all together, averaged, added, or averaged
# with each of them moving by the whole error, as in the published program
BUFFER = 4096  # kept words that are looked at together; longer sentences pass through, nothing is cut
LOOKED = 64  # one centre in so many tells its loss
FAR = float32(16)  # where the sigmoid is 0 or 1 to the last bit


fast = njit(nogil=True, fastmath=True, error_model="numpy", cache=True)


@njit(nogil=True, cache=True, inline="always")
def _mixed(x):
    """A well mixed number for each number (the finaliser of splitmix64, Steele et al. 2014)."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@fast
def sigmoid(x):
    """1 / (1 + exp(-x)) to 2e-7, without a branch: tanh(x/4) by Lambert's continued fraction, then its double angle."""
    y = min(max(x, -FAR), FAR) * float32(0.25)
    s = y * y
    p = y * (float32(135135) + s * (float32(17325) + s * (float32(378) + s)))
    q = float32(135135) + s * (float32(62370) + s * (float32(3150) + s * float32(28)))
    return float32(0.5) + p * q / (p * p + q * q)


@fast
def _copied(table, rows, n, whole, out):
    """Rows of a table side by side, and rows of zeros up to ``whole``."""
    width = table.shape[1]
    for i in range(n):
        r = rows[i]
        for d in range(width):
            out[i, d] = table[r, d]
    for i in range(n, whole):
        for d in range(width):
            out[i, d] = float32(0)


@fast
def _products(a, m, b, n, out):
    """``out[i * n + j] = a[i] . b[j]`` for m rows of a (an even number) and n of b (a multiple of 3)."""
    width = a.shape[1]
    for i in range(0, m, 2):
        for j in range(0, n, 3):
            u = v = w = x = y = z = float32(0)
            for d in range(width):
                s, t = a[i, d], a[i + 1, d]
                p, q, r = b[j, d], b[j + 1, d], b[j + 2, d]
                u += s * p
                v += s * q
                w += s * r
                x += t * p
                y += t * q
                z += t * r
            at = i * n + j
            out[at], out[at + 1], out[at + 2] = u, v, w
            at += n
            out[at], out[at + 1], out[at + 2] = x, y, z


@fast
def _add(out, row, weights, at, by, table, n, rate):
    """``out[row] += rate * sum over j of weights[at + j * by] * table[j]``, for n rows of the table."""
    width = out.shape[1]
    j = 0
    while j + 6 <= n:
        u, v, w = rate * weights[at], rate * weights[at + by], rate * weights[at + 2 * by]
        x, y, z = rate * weights[at + 3 * by], rate * weights[at + 4 * by], rate * weights[at + 5 * by]
        for d in range(width):
            out[row, d] += (
                u * table[j, d] + v * table[j + 1, d] + w * table[j + 2, d]
                + x * table[j + 3, d] + y * table[j + 4, d] + z * table[j + 5, d]
            )  # fmt: skip
        j += 6
        at += 6 * by
    while j + 2 <= n:
        u, v = rate * weights[at], rate * weights[at + by]
        for d in range(width):
            out[row, d] += u * table[j, d] + v * table[j + 1, d]
        j += 2
        at += 2 * by
    if j < n:
        u = rate * weights[at]
        for d in range(width):
            out[row, d] += u * table[j, d]


@fast
def step(inputs, outputs, contexts, m, rows, labels, n, rate, kind, a, b, f):
    """One window's update; ``f[i * n + j]``, n rounded up to 3s, is then the error of context i at row j.

    Mikolov et al. 2013b, eq. 4 (negative sampling: one row of label 1, the others of 0) and eq. 3 (a path: labels are
    its turns): each pair adds ``rate * (label - sigmoid(context . row))`` times the other vector to each of its two.
    All gradients are taken where the vectors were before.

    Args:
        contexts, m: words whose input vectors predict, and how many.
        rows, labels, n: rows of the outputs that are predicted, what is true of each, and how many.
        kind: SKIPGRAM, MEAN, SUM or UNDIVIDED.
        a, b, f: room for contexts, for outputs, and for their products.
    """
    whole = (n + 2) // 3 * 3
    if kind != SKIPGRAM:
        _step_together(inputs, outputs, contexts, m, rows, labels, n, rate, kind, a, f)
        return
    _copied(outputs, rows, n, whole, b)
    high = (m + 1) // 2 * 2
    _copied(inputs, contexts, m, high, a)
    _products(a, high, b, whole, f)
    for i in range(m * whole):
        f[i] = -sigmoid(f[i])
    for i in range(m):
        for j in range(n):
            f[i * whole + j] += labels[j]
    for j in range(n):
        _add(outputs, rows[j], f, j, whole, a, m, rate)
    for i in range(m):
        _add(inputs, contexts[i], f, i * whole, 1, b, n, rate)


@fast
def _step_together(inputs, outputs, contexts, m, rows, labels, n, rate, kind, a, f):
    """`step` where one vector, the mean or sum of the window's, predicts: no rows need be gathered."""
    width = inputs.shape[1]
    share = float32(1) if kind == SUM else float32(1) / float32(m)
    moved = share if kind == MEAN else float32(1)
    for d in range(width):
        a[0, d] = a[1, d] = float32(0)
    i = 0
    while i + 2 <= m:
        p, q = contexts[i], contexts[i + 1]
        for d in range(width):
            a[0, d] += inputs[p, d] + inputs[q, d]
        i += 2
    if i < m:
        p = contexts[i]
        for d in range(width):
            a[0, d] += inputs[p, d]
    for d in range(width):
        a[0, d] *= share
    for j in range(n):
        r = rows[j]
        x = float32(0)
        for d in range(width):
            x += a[0, d] * outputs[r, d]
        f[j] = x
    for j in range(n):
        f[j] = -sigmoid(f[j])
    for j in range(n):
        f[j] += labels[j]
    for j in range(n):
        r, x = rows[j], rate * moved * f[j]
        for d in range(width):
            a[1, d] += x * outputs[r, d]
    for j in range(n):
        r, x = rows[j], rate * f[j]
        for d in range(width):
            outputs[r, d] += x * a[0, d]
    for i in range(m):
        r = contexts[i]
        for d in range(width):
            inputs[r, d] += a[1, d]


@njit(nogil=True, error_model="numpy", cache=True)
def sweep(
    ids, ends, begin, end, kept, window, inputs, outputs, alias, negatives, codes, turns, starts, kind,
    rate, slope, least, seed, place_seed,
):  # fmt: skip
    """Learn from ``ids[begin:end]``. Returns (loss, pairs it was summed over, centres, pairs).

    Args:
        ids, ends: the text as word ids, and where each sentence ends.
        kept: uint32, of each word: it is kept where a 24-bit draw is below.
        alias: `alias_table` of the words that negatives are drawn of; unused with a tree.
        negatives: how many of them a window has; 0 for a tree.
        codes, turns, starts: `paths_of` a tree: rows and labels on the way to each word.
        rate, slope, least: learning rate at ``begin``, what it loses a word of the text, its lowest.
        seed: of negatives; differs for each range.
        place_seed: of subsampling and windows; the same for a whole epoch.
    """
    width = inputs.shape[1]
    most_rows = negatives + 1
    for w in range(starts.shape[0] - 1):
        most_rows = max(most_rows, starts[w + 1] - starts[w])
    tall = max(most_rows, 2 * window) + 3
    a, b = np.zeros((tall, width), np.float32), np.zeros((tall, width), np.float32)
    f = np.zeros(tall * tall, np.float32)
    rows, labels = np.zeros(tall, np.uint32), np.zeros(tall, np.float32)
    contexts = np.zeros(2 * window, np.uint32)
    size = BUFFER + 2 * window
    words, spread = np.zeros(size, np.uint32), np.zeros(size, np.int64)  # kept words, and how wide each one's window is
    places = np.zeros(size, np.int64)
    state = uint64(seed)
    vocabulary = uint64(alias.shape[0])
    loss, looked, centres, pairs = 0.0, 0, 0, 0

    s = np.searchsorted(ends, begin, side="right")
    while s < ends.shape[0]:
        first = ends[s - 1] if s > 0 else 0
        if first >= end:
            break
        last = ends[s]
        s += 1
        # On the left, as many kept words as a window can reach; they are no centres.
        p = max(first, begin)
        n, back = 0, p
        while back > first and n < window:
            back -= 1
            draw = _mixed(place_seed + uint64(back))
            n += (draw >> uint64(40)) < kept[ids[back]]
        n = 0
        while back < p:
            if (_mixed(place_seed + uint64(back)) >> uint64(40)) < kept[ids[back]]:
                words[n] = ids[back]
                n += 1
            back += 1
        centre, beyond = n, 0
        while True:
            while p < last and n < size and beyond < window:
                word = ids[p]
                draw = _mixed(place_seed + uint64(p))
                if (draw >> uint64(40)) < kept[word]:
                    words[n], places[n] = word, p
                    spread[n] = 1 + np.int64((draw & uint64(0xFFFFFFFF)) * uint64(window) >> uint64(32))
                    beyond += p >= end
                    n += 1
                p += 1
            over = p >= last or beyond >= window
            stop = n - beyond if over else n - window
            while centre < stop:
                word = words[centre]
                m = 0
                for k in range(max(0, centre - spread[centre]), min(n, centre + spread[centre] + 1)):
                    if k != centre:
                        contexts[m] = words[k]
                        m += 1
                count = 0
                if m > 0:
                    if negatives > 0:
                        rows[0], labels[0] = word, float32(1)
                        count = 1
                        for _ in range(negatives):
                            state += uint64(0x9E3779B97F4A7C15)
                            draw = _mixed(state)
                            at = (draw >> uint64(32)) * vocabulary >> uint64(32)
                            drawn = uint32(at) if (draw & uint64(0xFFFFFFFF)) < alias[at, 0] else alias[at, 1]
                            if drawn != word:
                                rows[count], labels[count] = drawn, float32(0)
                                count += 1
                    else:
                        for k in range(starts[word], starts[word + 1]):
                            rows[count], labels[count] = codes[k], turns[k]
                            count += 1
                    now = max(rate - slope * (places[centre] - begin), least)
                    step(inputs, outputs, contexts, m, rows, labels, count, float32(now), kind, a, b, f)
                    centres += 1
                    pairs += m
                    if centres % LOOKED == 1:
                        heads, whole = m if kind == SKIPGRAM else 1, (count + 2) // 3 * 3
                        for i in range(heads):
                            for j in range(count):
                                loss -= math.log(max(1.0 - abs(f[i * whole + j]), 1e-9))
                            looked += 1
                centre += 1
            if over:
                break
            # The rest of a long sentence: what the next centres can see moves to the front.
            move = centre - window
            for k in range(move, n):
                words[k - move], spread[k - move], places[k - move] = words[k], spread[k], places[k]
            n, centre = n - move, window
    return loss, looked, centres, pairs


def alias_table(weights: np.ndarray) -> np.ndarray:
    """uint32[words, 2]: draw a word, keep it where 32 random bits are below the first, else take the second.

    Walker's alias method, as of Vose 1991: the chance of each word is its share of the weights, in one look.
    """
    count = len(weights)
    chance = np.asarray(weights, np.float64) * (count / np.sum(weights))
    table = np.empty((count, 2), np.uint32)
    table[:, 0], table[:, 1] = 0xFFFFFFFF, np.arange(count)
    small, large = [i for i in range(count) if chance[i] < 1], [i for i in range(count) if chance[i] >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        table[low] = int(chance[low] * 0xFFFFFFFF), high
        chance[high] -= 1 - chance[low]
        if chance[high] < 1:
            small.append(large.pop())
    return table


def paths_of(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The Huffman tree of some counts: for word w, ``codes[starts[w]:starts[w + 1]]`` are the inner nodes from the root
    to it, and ``turns`` of the same places are 1 where the way goes left, 0 where it goes right.

    There are ``words - 1`` inner nodes, the root the last; frequent words have short ways (Mikolov et al. 2013b, 2.1).
    """
    count = len(counts)
    if count < 2:
        return np.zeros(0, np.uint32), np.zeros(0, np.float32), np.zeros(count + 1, np.int64)
    order = np.argsort(-np.asarray(counts, np.int64), kind="stable")[::-1]  # rarest first
    parent, right = _tree(order, np.asarray(counts, np.int64))
    return _paths(parent, right, count)


@njit(cache=True)
def _tree(order, counts):
    """Parents of leaves and inner nodes (leaf w is w, inner node i is words + i), and who is a right child.

    Leaves in order of count and inner nodes in order of making are two queues: the two smallest stand at their heads.
    """
    n = counts.shape[0]
    weight = np.zeros(n - 1, np.int64)
    parent, right = np.zeros(2 * n - 1, np.int64), np.zeros(2 * n - 1, np.bool_)
    leaf = inner = 0
    for made in range(n - 1):
        for side in range(2):
            if leaf < n and (inner >= made or counts[order[leaf]] <= weight[inner]):
                child = order[leaf]
                weight[made] += counts[child]
                leaf += 1
            else:
                child = n + inner
                weight[made] += weight[inner]
                inner += 1
            parent[child], right[child] = made, side == 1
    return parent, right


@njit(cache=True)
def _paths(parent, right, n):
    starts = np.zeros(n + 1, np.int64)
    for w in range(n):
        node, length = w, 0
        while node != 2 * n - 2:
            node = n + parent[node]
            length += 1
        starts[w + 1] = starts[w] + length
    codes, turns = np.zeros(starts[n], np.uint32), np.zeros(starts[n], np.float32)
    for w in range(n):
        node, k = w, starts[w + 1]
        while node != 2 * n - 2:
            k -= 1
            codes[k] = parent[node]
            turns[k] = 0.0 if right[node] else 1.0
            node = n + parent[node]
    return codes, turns, starts
