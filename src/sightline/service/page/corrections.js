// The links of a document as a person sees them: those of a policy, corrected.

const key = (sentence, image) => `${sentence} ${image}`;

export class Corrections {
  constructor(live) {
    this.live = live;
    this.choice = live.choices[0];
    this.least = -Infinity; // links that weigh less are not shown
    this.added = new Set();
    this.removed = new Set();
    this.history = [];
  }

  get any() {
    return this.added.size + this.removed.size > 0;
  }

  weight(link) {
    return this.live.measure === "confidence" ? link.confidence : link.score;
  }

  // All links that can be shown, each [sentence, image, weight, strength, made by hand].
  drawn() {
    const { links, strengths } = this.choice;
    const own = links.map((link, index) => ({ link, strength: strengths[index] }))
      .filter(({ link }) => !this.removed.has(key(link.sentence, link.image))
        && !this.added.has(key(link.sentence, link.image)))
      .map(({ link, strength }) => [link.sentence, link.image, this.weight(link), strength, false]);
    const made = this.hand().map(([sentence, image]) =>
      [sentence, image, this.similarity(sentence, image) ?? 0, 1, true]);
    return [...own, ...made];
  }

  hand() {
    return [...this.added].map((pair) => pair.split(" ").map(Number));
  }

  similarity(sentence, image) {
    return this.live.record.matrix[sentence][image];
  }

  // The links that are shown now, as a link record has them.
  links() {
    const certain = this.live.measure === "confidence" ? 1 : null;
    const kept = this.choice.links.filter((link) => {
      const pair = key(link.sentence, link.image);
      return this.weight(link) >= this.least && !this.removed.has(pair) && !this.added.has(pair);
    });
    const made = this.hand().map(([sentence, image]) =>
      ({ sentence, image, score: this.similarity(sentence, image) ?? null, confidence: certain }));
    return [...kept, ...made];
  }

  // Make a link or take it away; gives whether it is there now.
  toggle(sentence, image) {
    const pair = key(sentence, image);
    const there = this.links().some((link) => link.sentence === sentence && link.image === image);
    this.history.push([pair, this.added.has(pair), this.removed.has(pair)]);
    this.set(pair, !there, there);
    return !there;
  }

  set(pair, added, removed) {
    for (const [pairs, there] of [[this.added, added], [this.removed, removed]]) {
      if (there) pairs.add(pair);
      else pairs.delete(pair);
    }
  }

  undo() {
    const last = this.history.pop();
    if (last) this.set(...last);
  }

  record() {
    const { matrix, ...record } = this.live.record;
    return { ...record, links: this.links() };
  }

  // The document with these links as its true ones, in the native format.
  truth() {
    const { id, sentences, images } = this.live.record;
    const pairs = this.links().map((link) => [link.sentence, link.image]);
    pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return { id, sentences, images: images.map((image) => image.id), links: pairs };
  }
}
