// The page: which view is shown, and what comes in.

import { ask, askJson, setToken, Problem } from "./api.js";
import { CorpusList } from "./corpus.js";
import { byId, count, element, say, size } from "./dom.js";
import { Downloads } from "./downloads.js";
import { formOf, fromDrop, fromInput, namesImages, sortFiles, withNamedImages } from "./intake.js";
import { Pasted } from "./pasted.js";
import { Viewer } from "./viewer.js";

const AGAIN = 500; // milliseconds between two looks at a service that loads its model
const NAMES_SHOWN = 3; // of images that were not sent
const VIEWS = ["start", "work", "token", "viewer", "corpus"];
const viewer = new Viewer();
const downloads = new Downloads(viewer, fail);
const corpus = new CorpusList(viewer, openDocument, fail);
const pasted = new Pasted(take, link);
let loaded = false; // whether it is known what the service has
let working = null; // what cancels the work under way
let opened = null; // {upload, note} of the article that is shown
let afterToken = start;

function show(view, focus = null) {
  for (const name of VIEWS) byId(name).hidden = name !== view;
  const inCorpus = view === "corpus";
  document.body.className = view === "viewer" || inCorpus ? "whole" : "";
  for (const [link, current] of [["to-article", !inCorpus], ["to-corpus", inCorpus]]) {
    if (current) byId(link).setAttribute("aria-current", "page");
    else byId(link).removeAttribute("aria-current");
  }
  if (focus) byId(focus).focus({ preventScroll: true });
}

// ---- what goes wrong

function fail(problem) {
  if (problem.name === "AbortError") return;
  if (problem.status === 401) {
    show("token", "token-text");
    return;
  }
  if (!(problem instanceof Problem)) console.error(problem);
  const words = problem instanceof Problem ? problem.message : "Something went wrong in this page.";
  const place = byId("problem");
  const close = element("button", "×", { type: "button", class: "quiet", "aria-label": "Close" });
  close.addEventListener("click", () => { place.hidden = true; });
  place.replaceChildren(element("strong", words), close);
  const faults = (problem.faults || []).filter(({ field, reason }) => `${field}: ${reason}` !== words);
  if (faults.length) {
    const list = element("ul");
    for (const { field, reason } of faults) list.append(element("li", `${field}: ${reason}`));
    place.append(list);
  }
  if (problem.retryAfter) place.append(element("p", `Try again in ${count(problem.retryAfter, "second")}.`));
  place.hidden = false;
  if (!byId("work").hidden) show("start");
  place.scrollIntoView({ block: "nearest" });
}

function clearProblems() {
  byId("problem").hidden = true;
}

// ---- an article

const mayLeave = () => !viewer.unsaved || confirm("Your corrections are not downloaded yet. Leave them?");

async function link(upload, note = null) {
  clearProblems();
  const fields = { unit: byId("unit").value };
  working = new AbortController();
  const bytes = [upload.article, ...upload.images].reduce((sum, { file }) => sum + file.size, 0);
  byId("work-words").textContent = `${upload.article.path}, ${size(bytes)}`;
  show("work", "work-title");
  say("Looking for links.");
  try {
    const answer = await ask("v1/page", {
      method: "POST", body: formOf(upload, fields), signal: working.signal,
    });
    const live = await answer.json();
    openArticle(live, { upload, fields }, note);
  } catch (problem) {
    afterToken = () => link(upload, note);
    if (problem.name === "AbortError") {
      show("start", "start-title");
      say("Cancelled.");
    } else fail(problem);
  }
}

// The commonest first mistake: a page without the images that it names.
function offerMissing({ record }, { upload }) {
  const missing = record.images.filter(({ status }) => status === "missing");
  const one = missing.length === 1;
  const names = missing.slice(0, NAMES_SHOWN).map(({ id }) => id.split("/").pop().slice(0, 40));
  const more = missing.length > NAMES_SHOWN ? ", …" : "";
  byId("not-sent").hidden = !missing.length || !namesImages(upload.article);
  byId("not-sent").firstElementChild.textContent = `This page names ${count(missing.length, "image")} `
    + `that ${one ? "was" : "were"} not sent: ${names.join(", ")}${more}`;
  byId("add-missing").textContent = one ? "Add it" : "Add them";
}

// Link the page that is shown again, with these images beside those that it came with.
function addMissing(images) {
  const { upload, note } = opened;
  if (!mayLeave()) return;
  viewer.close();
  link({ article: upload.article, images: [...upload.images, ...images] }, note);
}

function openArticle(live, source, note) {
  byId("main").append(byId("viewer"));
  byId("back").textContent = "← New";
  byId("previous").hidden = byId("next").hidden = true;
  viewer.onKey = () => {};
  viewer.onCorrected = () => {};
  downloads.others = () => [];
  downloads.offer(source);
  show("viewer", "title");
  viewer.show(live);
  byId("note").textContent = note || "";
  byId("doubt").hidden = !live.doubt;
  byId("doubt").textContent = live.doubt || "";
  opened = { upload: source.upload, note };
  offerMissing(live, source);
  const { record } = live;
  const found = `${count(record.links.length, "link")} of ${count(record.images.length, "image")}`;
  const lacking = byId("not-sent").hidden ? "" : ` ${byId("not-sent").firstElementChild.textContent}`;
  say(`${live.title}: ${found}.${lacking}`);
}

function start() {
  if (!mayLeave()) return;
  viewer.close();
  if (location.hash !== "#article") history.replaceState(null, "", "#article");
  show("start", "start-title");
}

async function take(files) {
  const { article, images, note } = sortFiles(files);
  if (article) return link(await withNamedImages({ article, images }), note);
  if (images.length) {
    pasted.add(images.map(({ file }) => file));
    fail(new Problem(0, "Images alone are not enough: a document with text is needed. Write or "
      + "paste the text below, or give the document and its images together."));
    byId("text").focus();
    return null;
  }
  return fail(new Problem(0, files.length
    ? "There is no article among these files: HTML, Markdown, PDF, Word, EPUB, text or zip."
    : "Nothing to read was given."));
}

// ---- files and folders

for (const [button, input, use] of [
  ["choose-file", "files", take], ["choose-folder", "folder", take],
  ["add-missing", "missing", addMissing],
]) {
  byId(button).addEventListener("click", () => byId(input).click());
  byId(input).addEventListener("change", () => {
    const files = fromInput(byId(input));
    byId(input).value = "";
    if (files.length) use(files);
  });
}

// Anywhere: a file that misses the field would otherwise replace the page.
let depth = 0;
const carriesFiles = (event) => [...event.dataTransfer.types].includes("Files");
const droppable = () => !byId("start").hidden;
document.addEventListener("dragenter", (event) => {
  if (!carriesFiles(event)) return;
  depth += 1;
  byId("drop").classList.toggle("over", droppable());
});
document.addEventListener("dragleave", (event) => {
  if (!carriesFiles(event)) return;
  depth = Math.max(0, depth - 1);
  if (!depth) byId("drop").classList.remove("over");
});
document.addEventListener("dragover", (event) => {
  if (carriesFiles(event)) event.preventDefault();
});
document.addEventListener("drop", async (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  depth = 0;
  byId("drop").classList.remove("over");
  if (!droppable()) return;
  try {
    take(await fromDrop(event.dataTransfer));
  } catch {
    fail(new Problem(0, "What was dropped cannot be read; choose it with the button instead."));
  }
});

// ---- examples

async function loadExamples() {
  const examples = await askJson("v1/examples");
  byId("examples").querySelector("ul").replaceChildren(...examples.map((one) => {
    const button = element("button", null, { type: "button" });
    button.append(element("strong", one.title), element("span", one.words));
    button.addEventListener("click", () => tryExample(one));
    const item = element("li");
    item.append(button, element("a", one.credit, { href: one.address, rel: "noreferrer", class: "soft small" }));
    return item;
  }));
  byId("examples").hidden = !examples.length;
}

async function tryExample(one) {
  clearProblems();
  try {
    const content = await (await ask(`v1/examples/${encodeURIComponent(one.name)}`)).blob();
    const file = new File([content], `${one.name}.zip`, { type: "application/zip" });
    await link({ article: { file, path: file.name }, images: [] }, `${one.credit}.`);
  } catch (problem) {
    fail(problem);
  }
}

// ---- the corpus

function openDocument(live, corrections) {
  byId("beside").append(byId("viewer"));
  byId("back").textContent = "← List";
  byId("viewer").hidden = byId("previous").hidden = byId("next").hidden = false;
  document.body.classList.add("opened");
  clearProblems();
  byId("note").textContent = "";
  byId("not-sent").hidden = byId("doubt").hidden = true;
  viewer.onKey = (key) => corpus.key({ key });
  viewer.onCorrected = (shown) => corpus.keep(shown);
  downloads.others = () => corpus.corrected();
  downloads.offer(null);
  viewer.show(live, corrections);
  viewer.unsaved = corpus.kept.size > 0;
}

function openCorpus() {
  if (!mayLeave()) return;
  viewer.close();
  corpus.current = null;
  show("corpus", "corpus-title");
  corpus.load();
}

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (!byId("corpus").hidden) corpus.key(event);
});

// ---- the whole

function follow() {
  if (!loaded) return;
  corpus.leave();
  if (location.hash === "#corpus" && !byId("to-corpus").hidden) openCorpus();
  else start();
}

byId("back").addEventListener("click", () => {
  if (byId("corpus").hidden) start();
  else {
    viewer.unsaved = false; // the list keeps what was corrected
    openCorpus();
  }
});
byId("cancel").addEventListener("click", () => working && working.abort());
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token-text").value);
  load().then((done) => done && afterToken());
});
addEventListener("hashchange", follow);

// A service that has just been started loads its model first.
async function untilReady() {
  for (;;) {
    try {
      return await ask("readyz");
    } catch (problem) {
      if (problem.status !== 503) throw problem;
      byId("model").textContent = "loading the model …";
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }
}

async function load() {
  try {
    await untilReady();
    const { models: [model] } = await askJson("v1/models");
    byId("model").textContent = model ? `model ${model.name}` : "";
    await loadExamples();
    const corpora = await askJson("v1/corpora");
    corpus.setCorpora(corpora);
    byId("to-corpus").hidden = !corpora.length;
    loaded = true;
    if (location.hash === "#corpus") follow();
    return true;
  } catch (problem) {
    fail(problem);
    return false;
  }
}

load();
