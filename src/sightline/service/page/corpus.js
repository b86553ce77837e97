// A corpus seen with the model: its documents in a list, one of them beside it.

import { askJson } from "./api.js";
import { byId, count, element, say } from "./dom.js";

const PAGE = 100;
const AGAIN = 1000; // milliseconds between two looks while documents are scored

const percent = (value) => (value === null ? "–" : value.toFixed(1));

export class CorpusList {
  constructor(viewer, open, fail) {
    this.viewer = viewer;
    this.open = open; // shows what the service says of a document
    this.fail = fail;
    this.number = 0;
    this.rows = [];
    this.current = null; // the index of a document
    this.total = 0;
    this.measure = "score";
    this.asked = null; // the order and the split of the rows
    this.kept = new Map(); // corrections by document
    this.timer = null;
    for (const id of ["sort", "direction", "split"])
      byId(id).addEventListener("change", () => this.load());
    byId("which-corpus").addEventListener("change", () => this.choose(byId("which-corpus").selectedIndex));
    byId("more").addEventListener("click", () => this.load(this.rows.length));
    byId("previous").addEventListener("click", () => this.step(-1));
    byId("next").addEventListener("click", () => this.step(1));
  }

  setCorpora(states) {
    byId("which").hidden = states.length < 2;
    byId("which-corpus").replaceChildren(...states.map((state) => element("option", state.name)));
  }

  choose(number) {
    this.number = number;
    this.kept.clear();
    this.rows = [];
    this.current = this.asked = null;
    byId("split").replaceChildren();
    this.load();
  }

  leave() {
    clearTimeout(this.timer);
  }

  async load(offset = 0) {
    clearTimeout(this.timer);
    const asked = new URLSearchParams({
      sort: byId("sort").value, descending: byId("direction").value === "down",
      offset, limit: PAGE,
    });
    if (byId("split").value) asked.set("split", byId("split").value);
    try {
      const answer = await askJson(`v1/corpora/${this.number}/documents?${asked}`);
      this.show(answer, offset, asked.toString());
    } catch (problem) {
      this.fail(problem);
    }
  }

  show({ state, total, rows }, offset, asked) {
    byId("corpus-title").textContent = state.name;
    this.measure = state.measure;
    byId("sort").options[1].textContent = state.measure;
    const working = state.error === null && (!state.documents || state.scored < state.documents);
    const bar = byId("scoring");
    bar.hidden = !working;
    if (state.documents) Object.assign(bar, { max: state.documents, value: state.scored });
    byId("scored").textContent = state.error || (working
      ? `Scoring: ${state.scored} of ${count(state.documents, "document")} so far`
      : `${count(total, "document")}${state.truncated ? ", the first of the corpus" : ""}`);
    this.setSplits(state.splits);
    if (working) this.timer = setTimeout(() => this.load(), AGAIN);
    // What a person looks at must not move: rows come with the first and with all documents.
    if (working && this.rows.length && offset === 0 && asked === this.asked) return;
    this.asked = asked;
    this.rows = [...this.rows.slice(0, offset), ...rows];
    this.total = total;
    byId("rows").replaceChildren(...this.rows.map((row) => this.row(row)));
    byId("more").hidden = this.rows.length >= total;
    this.mark();
  }

  setSplits(splits) {
    const select = byId("split");
    byId("split-label").hidden = splits.length < 2;
    if (select.options.length === splits.length + 1) return;
    const chosen = select.value;
    select.replaceChildren(element("option", "all", { value: "" }),
      ...splits.map((split) => element("option", split, { value: split })));
    select.value = splits.includes(chosen) ? chosen : "";
  }

  row(row) {
    const button = element("button", null, { type: "button", "data-index": row.index });
    const facts = `${count(row.sentences, "sentence")}, ${count(row.images, "image")}`;
    const numbers = element("span", null, { class: "numbers" });
    numbers.append(this.fact("AUC", percent(row.auc)),
      this.fact(this.measure, this.weight(row.confidence)));
    button.append(element("span", row.title, { class: "name", dir: "auto" }),
      element("span", facts, { class: "soft small" }), numbers);
    button.addEventListener("click", () => this.pick(row.index));
    const item = element("li");
    item.append(button);
    return item;
  }

  weight(value) {
    if (value === null) return "–";
    if (this.measure !== "confidence") return value.toFixed(2);
    return value >= 0.995 && value < 1 ? ">99 %" : `${Math.round(100 * value)} %`;
  }

  fact(name, value) {
    const part = element("span");
    part.append(element("span", `${name} `, { class: "soft" }), value);
    return part;
  }

  place() {
    return this.rows.findIndex((row) => row.index === this.current);
  }

  async step(by) {
    const next = this.place() + by;
    if (next < 0) return;
    if (next >= this.rows.length) {
      if (this.rows.length >= this.total) return;
      await this.load(this.rows.length);
    }
    if (this.rows[next]) await this.pick(this.rows[next].index);
  }

  async pick(index) {
    this.current = index;
    this.mark();
    const asked = index;
    try {
      const live = await askJson(`v1/corpora/${this.number}/documents/${index}`);
      if (asked !== this.current) return; // a later step was faster
      const before = this.kept.get(index);
      if (before) before.live = live;
      this.open(live, before || null);
      const { auc, title } = live.row;
      say(`${title}, ${this.place() + 1} of ${this.total}${auc === null ? "" : `, AUC ${percent(auc)}`}.`);
    } catch (problem) {
      this.fail(problem);
    }
  }

  keep(corrections) {
    if (corrections.any) this.kept.set(this.current, corrections);
    else this.kept.delete(this.current);
  }

  // The other documents that were corrected.
  corrected() {
    return [...this.kept].filter(([index]) => index !== this.current).map(([, one]) => one.truth());
  }

  mark() {
    for (const button of byId("rows").querySelectorAll("button")) {
      const current = Number(button.dataset.index) === this.current;
      if (current) {
        button.setAttribute("aria-current", "true");
        button.scrollIntoView({ block: "nearest" });
      } else button.removeAttribute("aria-current");
    }
    byId("previous").disabled = this.place() <= 0;
    byId("next").disabled = this.place() < 0 || this.place() >= this.total - 1;
  }

  key(event) {
    const step = { j: 1, ArrowDown: 1, ArrowRight: 1, k: -1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    if (event.target && event.target.matches && event.target.matches("select, input, textarea")) return;
    if (event.preventDefault) event.preventDefault();
    this.step(step);
  }
}
