"""BPE that forgets some merges (Provilkov et al. 2020, "BPE-Dropout", algorithm 1).

`tokenizers` has it too, but draws from a generator that cannot be seeded, and a resumed run must cut every sentence as
the unbroken one would.
"""

from random import Random

__all__ = ["Merges", "segment"]

Merges = dict[tuple[int, int], tuple[int, int]]  # (left id, right id) -> (rank, id of both together)


def segment(letters: list[int], merges: Merges, dropout: float, chance: Random) -> list[int]:
    """The ids of one word after merging the best-ranked neighbours until none is left.

    At every step each possible merge is left out with probability ``dropout``; 0 is plain BPE, 1 leaves the letters.
    """
    pieces, draw = letters, chance.random
    while len(pieces) > 1:
        best: tuple[int, int] | None = None
        where = 0
        for position in range(len(pieces) - 1):
            merge = merges.get((pieces[position], pieces[position + 1]))
            # A merge that would not win is not drawn for: leaving it out or not changes nothing.
            if merge is not None and (best is None or merge < best) and draw() >= dropout:
                best, where = merge, position
        if best is None:
            break
        pieces[where : where + 2] = [best[1]]
    return pieces
