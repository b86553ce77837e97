"use strict";
// The article in a frame of the service's page, which says what the links are: it draws them, and
// tells that page what a person corrects. Text only ever becomes text nodes.
(function () {
  const { all, byId, data, element, links, parts } = page;
  const panel = byId("panel"), shown = byId("shown"), hint = panel.querySelector(".hint");
  const details = document.querySelector(".matrix-section details");
  const usualHint = hint.textContent;
  const HINT = "Click a sentence, then the images that belong to it; or an image, then its "
    + "sentences. The same click takes a link away. With the keyboard: Tab to a + or an image, "
    + "Enter, then choose in the list; Escape goes back; Delete on a number takes its link away.";
  const MOST_CHOICES = 24; // beside those that are linked, as many as one looks through
  const LONGEST = 160; // characters of a sentence in a label
  const rows = new Map((data.matrix || []).map(([sentence, , row]) => [sentence, row]));
  const texts = new Map(); // of the sentences, read once: there may be thousands
  for (const part of all(".sentence")) {
    const index = Number(part.dataset.sentence), before = texts.get(index);
    texts.set(index, before === undefined ? page.partText(part) : `${before} ${page.partText(part)}`);
  }
  let correcting = false;
  let picked = null; // {kind, index}
  let moved = false; // whether a person moved the slider

  const tell = (message) => parent.postMessage(message, "*");
  const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
  const similarity = (sentence, image) => {
    const row = rows.get(sentence);
    return row && row[image] !== null ? row[image] : undefined;
  };

  // ---- drawing the links

  function draw(message) {
    const focused = shown.contains(document.activeElement) && document.activeElement.dataset.choice;
    data.measure = message.measure;
    links.length = 0;
    message.links.forEach(([sentence, image, weight, strength, hand], number) =>
      links.push({ number, sentence, image, weight, strength, hand, shown: true }));
    const isTrue = message.truth && new Set(message.truth.map(([s, v]) => `${s} ${v}`));
    data.truth = isTrue;
    document.body.className = `${message.measure} ${message.layout}`;
    document.body.classList.toggle("correcting", correcting);
    if (message.layout === "document") matrixFirst();
    for (const part of all(".sentence")) drawSentence(part);
    for (const part of all(".picture")) drawDescription(part);
    drawList();
    setSlider();
    page.filter();
    if (details && details.open) page.drawMatrix();
    if (picked) pick(picked.kind, picked.index);
    if (focused) focusChoice(`[data-choice="${focused}"]`);
  }

  // Of a corpus's document the matrix is the overview: it has all sentences and images.
  function matrixFirst() {
    if (!details || details.open) return;
    const top = element("div", null, { class: "after first" });
    if (data.truth) {
      details.querySelector("#cells").before(
        element("p", "Dashed cells are the true links.", { class: "soft" }));
    }
    top.append(details.closest("section"));
    document.querySelector(".layout").before(top);
    details.open = true;
  }

  function drawSentence(part) {
    const index = Number(part.dataset.sentence);
    const own = links.filter((link) => link.sentence === index);
    const level = own.length ? Math.max(...own.map((link) => 1 + Math.floor(5 * link.strength))) : 0;
    part.className = `sentence s${Math.min(5, level)}`;
    const badges = part.querySelector(".badges");
    if (!badges) return; // another part of the same sentence has them
    const focused = badges.contains(document.activeElement);
    badges.replaceChildren(...own.map(badge), ...missed(index, own), pickButton(index));
    if (focused) badges.lastChild.focus({ preventScroll: true });
  }

  // Where the true links are known: those that were not found.
  function missed(index, own) {
    const images = data.truth ? data.titles.map((_, image) => image)
      .filter((image) => data.truth.has(`${index} ${image}`)
        && !own.some((link) => link.image === image)) : [];
    return images.map((image) => {
      const mark = element("span", image + 1, { class: "badge missed", title: "a true link, not found" });
      mark.append(element("span", ", a true link that was not found", { class: "hidden" }));
      return mark;
    });
  }

  function badge(link) {
    const known = data.truth && !link.hand;
    const right = known && data.truth.has(`${link.sentence} ${link.image}`);
    const judged = known ? (right ? ", a true link" : ", not a true link") : "";
    const label = `${data.titles[link.image]}, ${page.wordsOf(link)}${judged}`;
    const kind = link.hand ? " hand" : known ? (right ? " right" : " wrong") : "";
    return element("button", link.image + 1, {
      type: "button", class: `badge${kind}`, "data-link": link.number,
      "aria-pressed": "false", "aria-label": label, "aria-details": `image-${link.image + 1}`,
    });
  }

  function pickButton(index) {
    const label = `Choose images for: ${short(texts.get(index))}`;
    return element("button", "+", { type: "button", class: "pick", "aria-label": label });
  }

  function drawDescription(part) {
    const index = Number(part.dataset.image);
    const own = links.filter((link) => link.image === index);
    const said = own.map((link) => element(
      "span", `“${short(texts.get(link.sentence))}”, ${page.wordsOf(link)}. `,
      { "data-link": link.number },
    ));
    byId(`links-${index + 1}`).replaceChildren(own.length ? "Linked to: " : "No link.", ...said);
  }

  function drawList() {
    byId("measure").textContent = data.measures[data.measure];
    const table = byId("list");
    const title = data.measure === "confidence" ? "Confidence" : "Score";
    table.tHead.rows[0].lastElementChild.textContent = title;
    table.tBodies[0].replaceChildren(...[...links].sort((a, b) => a.image - b.image).map((link) => {
      const row = element("tr", null, { "data-link": link.number });
      const image = element("td"), sentence = element("td", null, { dir: "auto" });
      image.append(element("a", link.image + 1, {
        href: `#image-${link.image + 1}`, "aria-label": data.titles[link.image],
      }));
      sentence.append(element("a", texts.get(link.sentence), {
        href: `#sentence-${link.sentence + 1}`,
      }));
      row.append(image, sentence, element("td", link.hand ? "by hand" : page.words(link.weight)));
      return row;
    }));
    const empty = byId("empty") || table.parentNode.appendChild(
      element("p", "No image of this article is linked to a sentence.", { id: "empty" }));
    empty.hidden = links.length > 0;
    table.hidden = !links.length;
  }

  function setSlider() {
    const step = data.measure === "confidence" ? 0.01 : 0.001;
    const weights = links.filter((link) => !link.hand).map((link) => link.weight);
    const floor = (value) => Math.floor(value / step) * step;
    const slider = page.threshold;
    const value = Number(slider.value);
    slider.disabled = !weights.length;
    slider.labels[0].textContent = data.measure === "confidence" ? "Confidence from" : "Score from";
    if (!weights.length) return;
    slider.step = step;
    slider.min = floor(Math.min(0, ...weights)).toFixed(3);
    slider.max = floor(Math.max(...weights)).toFixed(3);
    slider.value = moved ? value : slider.min;
    tell({ kind: "threshold", value: Number(slider.value) });
  }

  page.threshold.addEventListener("input", () => {
    moved = true;
    tell({ kind: "threshold", value: Number(page.threshold.value) });
  });

  // ---- correcting

  function pick(kind, index) {
    for (const part of all(".picked")) part.classList.remove("picked");
    picked = kind === null ? null : { kind, index };
    page.pin(kind, index);
    hint.textContent = correcting ? HINT : usualHint;
    if (!picked) return;
    for (const part of parts(kind, index)) part.classList.add("picked");
    drawChoices();
    // On a narrow screen the panel lies over the article.
    const hidden = getComputedStyle(panel).position === "fixed"
      ? parts(kind, index)[0].getBoundingClientRect().bottom - panel.getBoundingClientRect().top : 0;
    if (hidden > 0) scrollBy(0, hidden + 24);
  }

  function drawChoices() {
    const { kind, index } = picked;
    const title = kind === "image"
      ? `Which sentences belong to image ${index + 1}?` : "Which images belong to this sentence?";
    const list = element("ul", null, { class: `choices ${page.other(kind)}` });
    for (const other of choices()) list.append(choice(other));
    shown.replaceChildren(element("h2", title), list);
    shown.hidden = false;
    hint.hidden = true;
    panel.classList.add("open");
    document.body.classList.add("open");
  }

  // Linked ones first, then by similarity; without one, in the order of the article.
  function choices() {
    const kind = page.other(picked.kind);
    const all = kind === "image" ? data.titles.map((_, index) => index)
      : [...texts.keys()];
    const place = (one) => (isLink(one) ? 2 : valueOf(one) ?? -2);
    const most = MOST_CHOICES + all.filter(isLink).length;
    return all.sort((a, b) => place(b) - place(a)).slice(0, most);
  }

  const pair = (one) => picked.kind === "image" ? [one, picked.index] : [picked.index, one];
  const valueOf = (one) => similarity(...pair(one));
  const isLink = (one) => {
    const [sentence, image] = pair(one);
    return links.some((link) => link.shown && link.sentence === sentence && link.image === image);
  };

  function choice(one) {
    const kind = page.other(picked.kind);
    const button = element("button", null, {
      type: "button", class: "go choice", "data-choice": one, "aria-pressed": String(isLink(one)),
    });
    const picture = kind === "image" && parts("image", one)[0].querySelector("img");
    if (picture) button.append(element("img", null, { src: picture.src, alt: data.titles[one] }));
    else if (kind === "image") button.append(element("span", data.titles[one], { class: "text" }));
    else button.append(element("span", texts.get(one), { class: "text" }));
    const value = valueOf(one);
    const words = value === undefined ? "" : `similarity ${value.toFixed(2)}`;
    const name = kind === "image" ? `Image ${one + 1}${words && ", "}` : "";
    const state = element("span", null, { class: "weight" });
    state.append(element("span", "", { class: "tick", "aria-hidden": "true" }), name + words);
    button.append(state);
    button.addEventListener("click", () => toggle(...pair(one)));
    const item = element("li");
    item.append(button);
    return item;
  }

  function focusChoice(selector) {
    const found = shown.querySelector(selector);
    if (found) found.focus({ preventScroll: true });
  }

  const toggle = (sentence, image) => tell({ kind: "toggle", sentence, image });

  // Before the page's own listener, which only shows what is linked.
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[href^='#']");
    if (anchor) follow(event, anchor);
    if (!correcting || event.target.closest("#panel, .bar, .after")) return;
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed) return;
    event.stopPropagation();
    const found = page.target(event.target);
    if (!found) return pick(null);
    if (picked && picked.kind !== found.kind) {
      toggle(...(found.kind === "image" ? [picked.index, found.index] : [found.index, picked.index]));
    } else if (picked && picked.index === found.index) {
      pick(null);
    } else {
      pick(found.kind, found.index);
      if (event.detail === 0) focusChoice(".choice"); // the keyboard
    }
  }, true);

  // An address with only a fragment is one of the page around the frame, not of this one.
  function follow(event, anchor) {
    event.preventDefault();
    const place = byId(anchor.hash.slice(1));
    if (!place) return;
    const found = page.target(place);
    if (anchor.hash === "#matrix" && details) details.open = true;
    if (found && !correcting) page.pin(found.kind, found.index);
    place.scrollIntoView({ block: found ? "center" : "start" });
    if (!place.matches("button")) place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const active = document.activeElement;
    if (event.key === "Escape" && picked) {
      const { kind, index } = picked;
      const back = shown.contains(active) && parts(kind, index).at(-1);
      pick(null);
      if (back) back.querySelector(kind === "image" ? ".frame" : ".pick").focus();
      event.stopPropagation();
    } else if (correcting && active.matches(".badge") && /^(Delete|Backspace)$/.test(event.key)) {
      const link = links[Number(active.dataset.link)];
      event.preventDefault();
      toggle(link.sentence, link.image);
    } else if (!active.matches("input, .frame, .badge, .choice")) {
      if (/^(j|k|ArrowLeft|ArrowRight)$/.test(event.key)) tell({ kind: "key", key: event.key });
    } else if (/^[jk]$/.test(event.key)) tell({ kind: "key", key: event.key });
  }, true);

  addEventListener("message", (event) => {
    if (event.source !== parent) return;
    if (event.data.kind === "links") draw(event.data);
    if (event.data.kind === "correct") {
      correcting = event.data.on;
      document.body.classList.toggle("correcting", correcting);
      pick(null);
    }
  });
  tell({ kind: "ready" });
})();
