"""The paper's formulas as plain loops: slow, obvious, and what every fast path is compared with.

Numbers are Python floats or torch scalars, so that the same lines give values and gradients.
M is a similarity matrix as a list of rows: sentences x images.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise, permutations


def cap(sentences, images, max_links):
    """k(S, V) of Section 4.1."""
    every = min(sentences, images)
    if max_links == "all":
        return every
    if max_links == "half":
        return math.ceil(every / 2)
    return min(max_links, every)


def dense_correspondence(M):
    """DC of Section 3.2."""
    n, m = len(M), len(M[0])
    from_sentences = sum(max(M[i][j] for j in range(m)) for i in range(n)) / n
    from_images = sum(max(M[i][j] for i in range(n)) for j in range(m)) / m
    return from_sentences + from_images


def top_k(M, max_links):
    """TK of Section 3.2: the k best sentence -> image edges and the k best image -> sentence."""
    n, m = len(M), len(M[0])
    k = cap(n, m, max_links)
    best_of_sentence = sorted((max(M[i][j] for j in range(m)) for i in range(n)), reverse=True)
    best_of_image = sorted((max(M[i][j] for i in range(n)) for j in range(m)), reverse=True)
    return sum(best_of_sentence[:k]) / k + sum(best_of_image[:k]) / k


def all_assignments(n, m, links):
    """Every way to link `links` sentences to as many images, one to one."""
    for sentences in combinations(range(n), links):
        for images in permutations(range(m), links):
            yield list(zip(sentences, images, strict=True))


def _number(value):
    return value if isinstance(value, float) else value.item()


def best_assignment(M, k, exactly=True):
    """x* of AP by trying everything: the links of the largest total."""
    n, m = len(M), len(M[0])
    best, best_total = [], -math.inf if exactly else 0.0
    for links in range(k if exactly else 1, k + 1):
        for pairs in all_assignments(n, m, links):
            total = sum(_number(M[i][j]) for i, j in pairs)
            if total > best_total:
                best, best_total = pairs, total
    return best


def assignment(M, max_links, exactly=True):
    """AP of Section 3.2: the sum over x* divided by its number of links."""
    pairs = best_assignment(M, cap(len(M), len(M[0]), max_links), exactly)
    return sum(M[i][j] for i, j in pairs) / len(pairs) if pairs else 0.0


def document_similarities(matrices, function):
    """sim(S_i, V_j): `matrices[i][j]` compares document i's sentences with j's images."""
    return [[function(M) for M in row] for row in matrices]


def hinge(positive, negative, margin):
    return max(0.0 * positive, margin - positive + negative)


def hinge_loss(similarities, margin, negatives):
    """Equation 1, one loss per document; `mean` averages instead of taking the maximum."""
    documents = len(similarities)
    losses = []
    for i in range(documents):
        true = similarities[i][i]
        others = [j for j in range(documents) if j != i]
        image_sets = [hinge(true, similarities[i][j], margin) for j in others]
        sentence_sets = [hinge(true, similarities[j][i], margin) for j in others]
        if negatives == "hard":
            losses.append(max(image_sets) + max(sentence_sets))
        else:
            losses.append(sum(image_sets) / len(others) + sum(sentence_sets) / len(others))
    return losses


def softmax_loss(similarities, temperature):
    """-log of the share of the true pair in its row, plus the same in its column."""
    documents = len(similarities)
    losses = []
    for i in range(documents):
        row = sum(
            math.exp((similarities[i][j] - similarities[i][i]) / temperature)
            for j in range(documents)
        )
        column = sum(
            math.exp((similarities[j][i] - similarities[i][i]) / temperature)
            for j in range(documents)
        )
        losses.append(math.log(row) + math.log(column))
    return losses


def gru(words, weight_ih, weight_hh, bias_ih, bias_hh):
    """Final state of one sentence, gate by gate, number by number (torch's cell)."""
    hidden = len(weight_hh[0])
    state = [0.0] * hidden

    def dot(row, vector):
        return sum(a * b for a, b in zip(row, vector, strict=True))

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    for word in words:
        new_state = []
        for h in range(hidden):
            gate = []
            for g in range(2):
                row = g * hidden + h
                gate.append(sigmoid(dot(weight_ih[row], word) + bias_ih[row]
                                    + dot(weight_hh[row], state) + bias_hh[row]))  # fmt: skip
            reset, update = gate
            row = 2 * hidden + h
            new = math.tanh(dot(weight_ih[row], word) + bias_ih[row]
                            + reset * (dot(weight_hh[row], state) + bias_hh[row]))  # fmt: skip
            new_state.append((1 - update) * new + update * state[h])
        state = new_state
    return state


def area_under_curve(true, scores):
    """Share of (true, false) pairs in the right order, a tie counting half."""
    right = pairs = 0.0
    for i, positive in enumerate(true):
        for j, other in enumerate(true):
            if positive and not other:
                pairs += 1
                right += 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return right / pairs


def precision_at(true, scores, cutoff):
    """Mean precision over every order that sorts the scores (small inputs only)."""
    cutoff = min(cutoff, len(scores))
    precisions = [
        sum(true[place] for place in order[:cutoff]) / cutoff
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return sum(precisions) / len(precisions)
