"""Best assignment of images to sentences, with a cap on the number of links.

The paper's AP reads a similarity matrix (sentences x images) as a bipartite assignment
problem: every sentence and every image takes part in at most one link, and the total
similarity of the links is to be as large as possible (section "Assignment Problem (AP)").
A cap k asks for the best set of k links. That is *not* the k best links of the full
assignment: of ``[[4, 5], [0, 4]]`` the full assignment is the diagonal, total 8, and the
best single link is the 5 beside it.

The method is exact: prices and shortest augmenting paths. A row gets ``worth - price`` out
of a column; every linked row sits on a column that it likes best, and a free column costs
nothing. A path enters at a free row, takes a column away from its row, sends that row on to
another column, and so on to a free column: one link more. Dijkstra's search finds the most
valuable path, and raising the prices of the columns it settled keeps all this true.

- *Capped*: start with no links and search from all free rows at once. The links after k paths
  are the best of all sets of k links, for every k, so the cap is where to stop. O(k n m) at
  worst, n and m being the sides; mostly little more than reading the matrix, because strong
  links come first and their paths are short.
- *Full* (k is the smaller side): each row of the smaller side gets a link, so their order is
  ours to choose. Jonker and Volgenant's augmenting row reduction seats most rows at one scan
  each, and a path is searched only for those left, one at a time. O(n n m), n the smaller.
- *At most* k counts what is worth less than nothing as nothing and leaves it out of the links.

`assign` solves one problem, the full one with scipy. `assign_many` solves a padded batch with
numba (the extra `fast`); without numba it calls `assign` for each problem,
where the same kernel runs interpreted: right, but slow. All of it is deterministic; of
assignments with equal totals scipy and the kernel may choose different ones.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Where `assign` begins to compile: links x sentences x images that take about as long to
# interpret as numba takes to import and to load the kernel from its cache (0.7 s, measured).
_COMPILE_FROM = 5_000_000
# Beyond this the sums of a search might overflow.
_LARGEST = 1e300
_NOT_FINITE = "the similarity matrix holds NaN or infinity; expected finite numbers"


def assign(
    similarity_SV: NDArray[Any], max_links: int | None = None, exactly: bool = True
) -> NDArray[np.int64]:
    """Choose the links, (sentence, image) pairs, with the largest total similarity.

    Args:
        similarity_SV: similarity of each sentence with each image; finite numbers.
        max_links: the cap k; None, or more than the smaller side, means the smaller side.
        exactly: True takes exactly k links, as the paper's code does, whatever they cost.
            False takes at most k and leaves out what does not raise the total.

    Returns:
        (links, 2) array sorted by sentence; (0, 2) where there is nothing to link.

    Raises:
        ValueError: similarity_SV is not a matrix of finite numbers or max_links is negative.
    """
    similarity_SV = _as_float(similarity_SV, 2).astype(np.float64, copy=False)
    sentences, images = similarity_SV.shape
    cap = min(sentences, images) if max_links is None else min(max_links, sentences, images)
    if cap < 0:
        raise ValueError(f"max_links is {max_links}; expected None or a number from 0 up")
    if not (np.abs(similarity_SV) <= _LARGEST).all():
        raise ValueError(_NOT_FINITE)
    if cap == 0:
        return np.empty((0, 2), np.int64)
    if cap == min(sentences, images):
        from scipy.optimize import linear_sum_assignment

        # At most: a link that does not raise the total may as well be counted as 0, then left out.
        worth_SV = similarity_SV if exactly else np.maximum(similarity_SV, 0)
        links = np.stack(linear_sum_assignment(worth_SV, maximize=True), axis=1)
        return links if exactly else links[worth_SV[links[:, 0], links[:, 1]] > 0]
    image_of_sentence_S = np.full(sentences, -1, np.int32)
    compile_it = _compiled.cache_info().currsize or cap * similarity_SV.size >= _COMPILE_FROM
    solve: Callable[..., int] = (_compiled() if compile_it else None) or _solve
    counts = (np.array([n]) for n in (sentences, images, cap))
    solve(similarity_SV[None], *counts, -np.inf if exactly else 0.0, image_of_sentence_S[None])
    (linked,) = np.nonzero(image_of_sentence_S >= 0)
    return np.stack([linked, image_of_sentence_S[linked].astype(np.int64)], axis=1)


def assign_many(
    similarity_BSV: NDArray[Any],
    sentences_B: ArrayLike,
    images_B: ArrayLike,
    max_links_B: ArrayLike | None = None,
    exactly: bool = True,
) -> NDArray[np.int32]:
    """Choose the image of each sentence, for many similarity matrices at once.

    Args:
        similarity_BSV: B matrices padded to one size; what the padding holds is ignored.
            float32 and float64 are read in place, other types are converted.
        sentences_B: number of sentences of each problem, its rows that count.
        images_B: number of images of each problem, its columns that count.
        max_links_B: the cap of each problem, as in `assign`.
        exactly: as in `assign`.

    Returns:
        image_of_sentence_BS: B x S, the image's index, or -1 for no link and for padding.

    Raises:
        ValueError: a shape or count does not fit, or a problem holds NaN or infinity
            outside its padding (the message names the problem).
    """
    similarity_BSV = _as_float(similarity_BSV, 3)
    problems, height, width = similarity_BSV.shape
    sentences_B = _as_counts(sentences_B, "sentences_B", problems, height)
    images_B = _as_counts(images_B, "images_B", problems, width)
    caps_B = np.minimum(sentences_B, images_B)
    if max_links_B is not None:
        caps_B = np.minimum(_as_counts(max_links_B, "max_links_B", problems, None), caps_B)
    image_of_sentence_BS = np.full((problems, height), -1, np.int32)
    solve = _compiled()
    if solve is None:
        for b in range(problems):
            try:
                links = assign(
                    similarity_BSV[b, : sentences_B[b], : images_B[b]], int(caps_B[b]), exactly
                )
            except ValueError as error:
                raise ValueError(f"problem {b}: {error}") from None
            image_of_sentence_BS[b, links[:, 0]] = links[:, 1]
        return image_of_sentence_BS
    floor = -np.inf if exactly else 0.0
    bad = solve(similarity_BSV, sentences_B, images_B, caps_B, floor, image_of_sentence_BS)
    if bad >= 0:
        raise ValueError(f"problem {bad}: {_NOT_FINITE}")
    return image_of_sentence_BS


def _as_float(similarity: NDArray[Any], dimensions: int) -> NDArray[Any]:
    """Make a contiguous float32 or float64 array of the given number of dimensions."""
    similarity = np.asarray(similarity)
    if similarity.ndim != dimensions:
        raise ValueError(
            f"similarity has shape {similarity.shape}; expected {dimensions} dimensions"
        )
    wanted = similarity.dtype if similarity.dtype in (np.float32, np.float64) else np.float64
    return np.ascontiguousarray(similarity, dtype=wanted)


def _as_counts(
    counts_B: ArrayLike, name: str, problems: int, limit: int | None
) -> NDArray[np.int64]:
    """Check for one whole number a problem, from 0 to the limit."""
    counts = np.asarray(counts_B)
    if counts.shape != (problems,) or (counts.size and counts.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has shape {counts.shape} and type {counts.dtype}; "
            f"expected {problems} whole numbers, one a problem"
        )
    if counts.size and (counts.min() < 0 or (limit is not None and counts.max() > limit)):
        raise ValueError(
            f"{name} runs from {counts.min()} to {counts.max()}; "
            f"expected 0 to {'any number' if limit is None else limit}"
        )
    return np.ascontiguousarray(counts, dtype=np.int64)


@functools.cache
def _compiled() -> Callable[..., int] | None:
    """Compile the kernel with numba; None where numba is not installed.

    Only here is numba imported, for it takes half a second. The compiled code is kept in the
    package's `__pycache__`, or in the user's cache folder if that cannot be written.
    """
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return None
    try:
        compiled: Callable[..., int] = numba.njit(_solve, cache=True, nogil=True)
    except RuntimeError:  # neither folder can be written: compile anew in each process
        compiled = numba.njit(_solve, nogil=True)
    return compiled


# A plain function that calls no other, so that the same source runs compiled and interpreted.
def _solve(
    similarity_BSV: NDArray[Any],
    sentences_B: NDArray[np.int64],
    images_B: NDArray[np.int64],
    caps_B: NDArray[np.int64],
    floor: float,
    image_of_sentence_BS: NDArray[np.int32],
) -> int:
    """Solve a padded batch; return the first problem that is not finite, or -1.

    Similarities below `floor` count as `floor`, and links at it are left out: 0 gives "at
    most", minus infinity "exactly". All sums are in float64, whatever comes in.
    """
    few = min(similarity_BSV.shape[1:])
    many = max(similarity_BSV.shape[1:])
    worth = np.zeros(few * many + many)  # the problem, row by row, and one row that is unused
    price = np.empty(many)  # infinite while the search is done with the column
    owner = np.empty(many, np.int64)  # row that holds the column, or -1
    entry = np.empty(many)  # worth of the link with which a path may enter at the column
    entry_row = np.empty(many, np.int64)
    value = np.empty(many)  # of the best path to the column, its price paid
    via = np.empty(many, np.int64)  # settled column before this one on that path, or -1
    settled = np.empty(many, np.int64)  # columns the search is done with, in order
    settled_value = np.empty(many)
    settled_price = np.empty(many)
    left = np.empty(few, np.int64)  # rows that the row reduction could not seat
    used = np.empty(many + 1)  # infinite for rows with a link and for row n, else 0
    for b in range(sentences_B.size):
        sentences = sentences_B[b]
        images = images_B[b]
        cap = caps_B[b]
        capped = cap < sentences and cap < images
        # Full: each row gets a link, so rows are the smaller side. Capped: rows are the larger
        # side, so that a search has few columns to settle.
        upright = (sentences > images) == capped  # sentences are the rows
        n = sentences if upright else images
        m = images if upright else sentences
        finite = True
        for s in range(sentences):
            for v in range(images):
                x = similarity_BSV[b, s, v]
                finite &= abs(x) <= _LARGEST
                if upright:
                    worth[s * m + v] = x if x > floor else floor
                else:
                    worth[v * m + s] = x if x > floor else floor
        if not finite:
            return b
        price[:m] = 0.0
        owner[:m] = -1
        entry_row[:m] = -1
        used[:n] = 0.0
        used[n] = np.inf
        searches = cap if capped else 0
        if not capped:
            # Augmenting row reduction: a row takes its best column, raises its price until the
            # second best is as good, and the row it threw out looks for another. Rectangular
            # problems stay right: only held columns have a price and a held column stays held.
            # Prices may creep up in tiny steps for very long, hence a limit on the steps.
            steps = 2 * n
            for first in range(n):
                row = first
                while row >= 0:
                    line = worth[row * m : row * m + m]
                    top = second = -np.inf
                    end = 0
                    # Without branches, which the processor mispredicts here: twice as fast.
                    for j in range(m):
                        x = line[j] - price[j]
                        lesser = x if x < top else top
                        second = lesser if lesser > second else second
                        end = j if x > top else end
                        top = x if x > top else top
                    steps -= 1
                    thrown_out = owner[end]
                    if thrown_out >= 0 and (steps < 0 or top == second):
                        left[searches] = row
                        searches += 1
                        break
                    price[end] += top - second
                    owner[end] = row
                    row = thrown_out
        row = -1
        for search in range(searches):
            if capped:  # enter at any free row; a column's best is looked for when it is gone
                for j in range(m):
                    if entry_row[j] == row:
                        top = rival = -np.inf
                        end = rival_end = 0
                        half = (n + 1) // 2
                        for i in range(half):  # two halves side by side: a third faster
                            x = worth[i * m + j] - used[i]
                            end = i if x > top else end
                            top = x if x > top else top
                            y = worth[(i + half) * m + j] - used[i + half]
                            rival_end = i if y > rival else rival_end
                            rival = y if y > rival else rival
                        entry[j] = rival if rival > top else top
                        entry_row[j] = rival_end + half if rival > top else end
            else:
                row = left[search]
                for j in range(m):
                    entry[j] = worth[row * m + j]
                    entry_row[j] = row
            top = -np.inf
            end = 0
            for j in range(m):
                x = entry[j] - price[j]
                value[j] = x
                via[j] = -1
                # Of equals a free column, which ends the search at once.
                end = j if (x > top) | ((x == top) & (owner[j] < 0)) else end
                top = x if x > top else top
            count = 0
            while owner[end] >= 0:
                last = end
                line = worth[owner[last] * m : owner[last] * m + m]
                base = top - line[last] + price[last]
                settled[count] = last
                settled_value[count] = top
                settled_price[count] = price[last]
                count += 1
                value[last] = -np.inf
                price[last] = np.inf
                top = -np.inf
                for j in range(m):
                    x = base + line[j] - price[j]
                    via[j] = last if x > value[j] else via[j]
                    value[j] = x if x > value[j] else value[j]
                for j in range(m):  # apart, so that the loop above runs on vectors
                    y = value[j]
                    end = j if y > top else end
                    top = y if y > top else top
            for c in range(count):
                price[settled[c]] = settled_price[c] + settled_value[c] - top
            if capped and top <= floor:  # gains never rise: no later path would help
                break
            while via[end] >= 0:
                owner[end] = owner[via[end]]
                end = via[end]
            row = entry_row[end]
            owner[end] = row
            if capped:
                used[row] = np.inf
        for j in range(m):
            row = owner[j]
            if row >= 0 and worth[row * m + j] > floor:
                if upright:
                    image_of_sentence_BS[b, row] = j
                else:
                    image_of_sentence_BS[b, j] = row
    return -1
