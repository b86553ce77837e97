// The menu of what can be downloaded of a document that is shown.

import { ask, postJson } from "./api.js";
import { byId, element, say } from "./dom.js";
import { formOf } from "./intake.js";

const stem = (name) => (name.split("/").pop().replace(/\.[^.]*$/, "")
  .replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+/, "").slice(0, 80) || "article");

function save(content, name, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = element("a", null, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  say(`${name} is downloaded.`);
}

const lines = (records) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

// shown: Corrections; source: {upload, fields}, or null for a document of a corpus.
const FORMS = [
  {
    words: "Page", about: "HTML, one file", upload: true,
    async make(shown, source, name) {
      const form = formOf(source.upload, source.fields);
      form.append("record", JSON.stringify(shown.record()));
      const answer = await ask("v1/page/html", { method: "POST", body: form });
      save(await answer.blob(), `${name}.links.html`);
    },
  },
  {
    words: "Links", about: "JSONL",
    make: (shown, _, name) => save(lines([shown.record()]), `${name}.links.jsonl`, "application/jsonl"),
  },
  {
    words: "Links", about: "CSV",
    make: (shown, _, name) => form(shown, "csv", `${name}.links.csv`),
  },
  {
    words: "Annotations", about: "Web Annotation, JSON",
    make: (shown, _, name) => form(shown, "annotations", `${name}.annotations.json`),
  },
  {
    words: "Alt-text report", about: "HTML, one file", upload: true,
    make: (shown, source, name) => alts(source, "html", `${name}.alt.html`),
  },
  {
    words: "Alt-text report", about: "text", upload: true,
    make: (shown, source, name) => alts(source, "text", `${name}.alt.txt`),
  },
  {
    words: "Corrected links", about: "ground truth, JSONL", truth: true,
    make: (shown, _, name, others) =>
      save(lines([...others, shown.truth()]), `${name}.truth.jsonl`, "application/jsonl"),
  },
];

async function alts(source, kind, name) {
  const body = formOf(source.upload, source.fields);
  const answer = await ask(`v1/alt?format=${kind}`, { method: "POST", body });
  save(await answer.blob(), name);
}

async function form(shown, kind, name) {
  const answer = await postJson(`v1/forms/${kind}`, { record: shown.record(), text: shown.live.text });
  save(await answer.blob(), name);
}

export class Downloads {
  // fail is told of what goes wrong.
  constructor(viewer, fail) {
    this.viewer = viewer;
    this.fail = fail;
    this.source = null;
    this.others = () => [];
    const menu = byId("downloads");
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        menu.open = false;
        menu.querySelector("summary").focus();
        event.stopPropagation();
      }
    });
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    addEventListener("blur", () => { menu.open = false; }); // a click into the frame
  }

  offer(source) {
    this.source = source;
    const offered = FORMS.filter((one) => source || !one.upload);
    byId("downloads").querySelector("ul").replaceChildren(...offered.map((one) => {
      const button = element("button", one.words, { type: "button" });
      button.append(element("span", one.about, { class: "soft" }));
      button.addEventListener("click", () => this.make(one, button));
      const item = element("li");
      item.append(button);
      return item;
    }));
  }

  async make(one, button) {
    const { shown } = this.viewer;
    button.disabled = true;
    try {
      await one.make(shown, this.source, stem(shown.live.record.id), this.others());
      if (one.truth) this.viewer.unsaved = false;
    } catch (problem) {
      this.fail(problem);
    } finally {
      button.disabled = false;
      byId("downloads").open = false;
    }
  }
}
