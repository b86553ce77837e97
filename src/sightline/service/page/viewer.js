// An article with its links: the frame that shows it, and the tools around it.

import { Corrections } from "./corrections.js";
import { byId, count, element, say } from "./dom.js";

const NAMES = {
  "assignment all": "One to one (assignment)",
  "assignment half": "One to one, better half",
  "dense all": "Best partner of each (dense)",
  "top-k half": "Best pairs each way (top-k)",
  "mmc4 all": "Every image (MMC4)",
};

export class Viewer {
  constructor() {
    this.shown = null; // Corrections
    this.frame = null;
    this.correcting = false;
    this.onKey = () => {};
    this.onCorrected = () => {};
    addEventListener("message", (event) => this.hear(event));
    addEventListener("beforeunload", (event) => {
      if (this.unsaved) event.preventDefault();
    });
    byId("policy").addEventListener("change", () => this.choose(byId("policy").selectedIndex));
    byId("correct").addEventListener("click", () => this.setCorrecting(!this.correcting));
    byId("undo").addEventListener("click", () => this.undo());
  }

  // live is what the service says of an article; corrections, those made to it before.
  show(live, corrections = null) {
    this.shown = corrections || new Corrections(live);
    this.unsaved = false;
    byId("title").textContent = live.title;
    byId("policy").replaceChildren(...live.choices.map((choice) => {
      const name = `${choice.policy} ${choice.max_links}`;
      const option = element("option", NAMES[name] || name);
      option.selected = choice === this.shown.choice;
      return option;
    }));
    byId("undo").hidden = !this.shown.history.length;
    this.setCorrecting(false);
    this.frame = element("iframe", null, {
      sandbox: "allow-scripts", title: "The article and its links", referrerpolicy: "no-referrer",
    });
    this.frame.srcdoc = live.page;
    byId("frame").replaceChildren(this.frame);
  }

  close() {
    this.shown = this.frame = null;
    this.unsaved = false;
    byId("frame").replaceChildren();
  }

  // The frame has no origin of its own, so that it is known by its window alone.
  hear(event) {
    if (!this.frame || event.source !== this.frame.contentWindow) return;
    const { kind, value, sentence, image, key } = event.data;
    if (kind === "ready") this.draw();
    if (kind === "ready" && this.correcting) this.tell({ kind: "correct", on: true });
    if (kind === "threshold" && typeof value === "number") this.shown.least = value;
    if (kind === "toggle") this.toggle(sentence, image);
    if (kind === "key") this.onKey(key);
  }

  tell(message) {
    if (this.frame) this.frame.contentWindow.postMessage(message, "*");
  }

  draw() {
    const { live } = this.shown;
    this.tell({
      kind: "links", measure: live.measure, links: this.shown.drawn(), truth: live.truth || null,
      layout: live.text === null ? "document" : "article",
    });
    byId("undo").hidden = !this.shown.history.length;
  }

  choose(index) {
    this.shown.choice = this.shown.live.choices[index];
    this.shown.least = -Infinity;
    this.draw();
    say(`${byId("policy").value}: ${count(this.shown.links().length, "link")}.`);
  }

  setCorrecting(on) {
    this.correcting = on;
    byId("correct").setAttribute("aria-pressed", String(on));
    this.tell({ kind: "correct", on });
    if (on) say("Choose a sentence or an image in the article, then what belongs to it.");
  }

  toggle(sentence, image) {
    const { images, sentences } = this.shown.live.record;
    if (!(sentence in sentences) || !(image in images)) return;
    const there = this.shown.toggle(sentence, image);
    this.changed(`Sentence ${sentence + 1} and image ${image + 1}: ${there ? "linked" : "link removed"}.`);
  }

  undo() {
    this.shown.undo();
    this.changed("Undone.");
    if (byId("undo").hidden) byId("correct").focus();
  }

  changed(words) {
    this.unsaved = this.shown.any;
    this.onCorrected(this.shown);
    this.draw();
    say(words);
  }
}
