"use strict";
// Lights up what belongs together. Text of the article only ever becomes text nodes.
const page = (function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
  const links = data.links.map(([sentence, image, weight, strength], number) => ({
    number, sentence, image, weight, strength, shown: true,
  }));
  const panel = byId("panel"), shownParts = byId("shown"), hint = panel.querySelector(".hint");
  const threshold = byId("threshold");
  let pinned = null; // {kind, index}
  let current = null;
  const turn = new Map(); // which partner of an image the arrow keys came to last

  const parts = (kind, index) => all(`[data-${kind}="${index}"]`);
  const other = (kind) => (kind === "image" ? "sentence" : "image");
  const linksOf = (kind, index) =>
    links.filter((link) => link.shown && link[kind] === index).sort((a, b) => b.weight - a.weight);
  const percent = (weight) =>
    weight >= 0.995 && weight < 1 ? ">99 %" : `${Math.round(100 * weight)} %`;
  const words = (weight) => (data.measure === "confidence" ? percent(weight) : weight.toFixed(2));
  const wordsOf = (link) => (link.hand ? "by hand" : `${data.measure} ${words(link.weight)}`);

  function element(name, text, attributes) {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  }

  function partText(part) {
    const copy = part.cloneNode(true);
    for (const extra of all(".badges, .picture", copy)) extra.remove();
    return copy.textContent.trim();
  }

  const sentenceText = (index) => parts("sentence", index).map(partText).join(" ");

  // ---- lighting up

  function light(kind, index, strength) {
    for (const part of parts(kind, index)) {
      part.classList.add("lit");
      part.style.setProperty("--strength", strength);
    }
  }

  function show(kind, index) {
    if (current && current.kind === kind && current.index === index) return;
    for (const part of all(".lit")) {
      part.classList.remove("lit");
      part.style.removeProperty("--strength");
    }
    current = kind ? { kind, index } : null;
    const found = kind ? linksOf(kind, index) : [];
    if (found.length) {
      light(kind, index, found[0].strength);
      for (const link of found) light(other(kind), link[other(kind)], link.strength);
    }
    drawPanel(kind, index, found);
  }

  function drawPanel(kind, index, found) {
    const open = found.length > 0;
    panel.classList.toggle("open", open);
    document.body.classList.toggle("open", open && pinned !== null);
    hint.hidden = open;
    shownParts.hidden = !open;
    if (!open) return;
    const title = kind === "image" ? `Image ${index + 1} belongs to` : "This sentence belongs to";
    const list = element("ul");
    for (const link of found) list.append(partner(other(kind), link));
    shownParts.replaceChildren(element("h2", title), list);
  }

  function partner(kind, link) {
    const item = element("li");
    const go = element("button", null, { type: "button", class: "go", tabindex: "-1" });
    if (kind === "image") {
      const picture = parts("image", link.image)[0].querySelector("img");
      if (picture) go.append(element("img", null, { src: picture.src, alt: data.titles[link.image] }));
      else go.append(element("span", data.titles[link.image], { class: "text" }));
    } else {
      go.append(element("span", sentenceText(link.sentence), { class: "text" }));
    }
    const weight = element("span", null, { class: "weight" });
    const bar = element("i"), filled = element("b");
    filled.style.setProperty("--strength", link.strength);
    bar.append(filled);
    const number = kind === "image" ? `Image ${link.image + 1}, ` : "";
    weight.append(bar, `${number}${wordsOf(link)}`);
    go.append(weight);
    go.addEventListener("click", (event) => {
      event.stopPropagation(); // the panel is drawn anew, so that the page could not tell whose it was
      pin(kind, link[kind]);
      bring(button(kind, link));
    });
    item.append(go);
    return item;
  }

  function pin(kind, index) {
    pinned = kind === null ? null : { kind, index };
    for (const pressed of all('[aria-pressed="true"]')) pressed.setAttribute("aria-pressed", "false");
    if (pinned) {
      for (const part of parts(kind, index))
        for (const one of all(".frame, button.badge", part))
          if (one.closest("[data-image], [data-sentence]") === part) one.setAttribute("aria-pressed", "true");
    }
    current = null;
    show(kind, index);
  }

  // ---- what is pointed at

  function target(node) {
    const part = node instanceof Element && node.closest("[data-image], [data-sentence]");
    if (!part) return null;
    const kind = "image" in part.dataset ? "image" : "sentence";
    return { kind, index: Number(part.dataset[kind]) };
  }

  function point(event) {
    if (pinned) return;
    if (event.target instanceof Element && event.target.closest("#panel")) return;
    const found = target(event.target);
    if (found && linksOf(found.kind, found.index).length) show(found.kind, found.index);
    else if (event.type === "pointerover" && event.pointerType === "mouse") {
      // Where the pointer rests on nothing, what has the focus stays lit.
      const focused = target(document.activeElement);
      if (focused) show(focused.kind, focused.index);
      else show(null);
    } else show(null);
  }

  document.addEventListener("pointerover", point);
  document.addEventListener("focusin", point);
  document.addEventListener("focusout", (event) => {
    if (!pinned && !event.relatedTarget) show(null);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("#panel, .bar, a")) return;
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed) return;
    const found = target(event.target);
    const same = found && pinned && pinned.kind === found.kind && pinned.index === found.index;
    if (!found || same || !linksOf(found.kind, found.index).length) pin(null);
    else pin(found.kind, found.index);
  });

  // ---- the keyboard

  function button(kind, link) {
    if (kind === "image") return parts("image", link.image)[0].querySelector(".frame");
    return document.querySelector(`.badge[data-link="${link.number}"]`);
  }

  function bring(one) {
    one.focus({ preventScroll: true });
    (one.closest("[data-image], [data-sentence]") || one).scrollIntoView({ block: "center" });
  }

  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      pin(null);
      return;
    }
    const active = document.activeElement;
    const step = steps[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!active || !active.matches(".frame, .badge")) return;
    const from = target(active);
    const found = linksOf(from.kind, from.index);
    if (!found.length) return;
    event.preventDefault();
    let link = links[Number(active.dataset.link)];
    if (from.kind === "image") {
      const last = turn.has(from.index) ? turn.get(from.index) : step > 0 ? -1 : 0;
      const next = (last + step + found.length) % found.length;
      turn.set(from.index, next);
      link = found[next];
    }
    if (pinned) pin(null);
    bring(button(other(from.kind), link));
  });

  // ---- the threshold

  function filter() {
    const least = Number(threshold.value);
    byId("level").textContent = words(least);
    threshold.setAttribute("aria-valuetext", words(least));
    for (const link of links) link.shown = link.hand || link.weight >= least;
    for (const one of all("[data-link]")) one.hidden = !links[Number(one.dataset.link)].shown;
    for (const part of all(".sentence"))
      part.classList.toggle("off", !linksOf("sentence", Number(part.dataset.sentence)).length);
    for (const part of all(".picture"))
      part.classList.toggle("linked", linksOf("image", Number(part.dataset.image)).length > 0);
    const count = links.filter((link) => link.shown).length;
    byId("count").textContent = count === links.length
      ? `${count} link${count === 1 ? "" : "s"}` : `${count} of ${links.length} links`;
    turn.clear();
    if (pinned && !linksOf(pinned.kind, pinned.index).length) pin(null);
    else if (current) {
      const { kind, index } = current;
      current = null;
      show(kind, index);
    }
  }

  if (threshold) {
    threshold.addEventListener("input", filter);
    threshold.form.addEventListener("submit", (event) => event.preventDefault());
  }

  // ---- the matrix

  function drawMatrix() {
    const images = data.titles.length;
    const values = data.matrix.flatMap((row) => row[2]).filter((value) => value !== null);
    let low = Infinity, high = -Infinity;
    for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
    const linked = new Set(links.map((link) => `${link.sentence} ${link.image}`));
    const table = element("table", null, { class: images > 12 ? "cells dense" : "cells" });
    const head = element("tr");
    head.append(element("td"));
    data.titles.forEach((title, index) => {
      const cell = element("th", null, { scope: "col", title });
      const picture = parts("image", index)[0].querySelector("img");
      if (picture) cell.append(element("img", null, { src: picture.src, alt: "" }));
      cell.append(element("span", "image ", { class: "hidden" }), String(index + 1));
      head.append(cell);
    });
    const body = element("tbody");
    for (const [sentence, text, row] of data.matrix) {
      const line = element("tr");
      line.append(element("th", text, { scope: "row", title: text }));
      row.forEach((value, index) => line.append(matrixCell(sentence, text, index, value)));
      body.append(line);
    }
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    byId("cells").replaceChildren(table);

    function matrixCell(sentence, text, index, value) {
      if (value === null) return element("td", "–", { title: "no picture to compare" });
      const cell = element("td", value.toFixed(2));
      cell.style.setProperty("--heat", ((value - low) / (high - low || 1)) ** 1.5);
      const isLink = linked.has(`${sentence} ${index}`);
      if (data.truth && data.truth.has(`${sentence} ${index}`)) {
        cell.dataset.true = "";
        cell.append(element("span", " true", { class: "hidden" }));
      }
      if (isLink) {
        cell.className = "link";
        cell.append(element("span", " link", { class: "hidden" }));
      }
      cell.addEventListener("pointerenter", () => {
        byId("readout").textContent =
          `${value.toFixed(2)}: image ${index + 1} and “${text}”${isLink ? " (link)" : ""}`;
      });
      return cell;
    }
  }

  const details = document.querySelector(".matrix-section details");
  if (details) details.addEventListener("toggle", drawMatrix, { once: true });
  for (const anchor of all('a[href="#matrix"]'))
    anchor.addEventListener("click", () => { details.open = true; });

  // Opened at one part of the page, as the list of links does.
  addEventListener("hashchange", () => {
    const found = target(byId(location.hash.slice(1)));
    if (found) pin(found.kind, found.index);
  });

  return {
    all, byId, data, drawMatrix, element, filter, links, other, parts, partText, pin, target,
    threshold, words, wordsOf,
  };
})();
