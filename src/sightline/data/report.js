"use strict";
// Draws the browsable documents. Text from documents only ever becomes text nodes.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const list = byId("list"), panel = byId("panel"), status = byId("status");
  const filter = byId("filter"), order = byId("order"), group = byId("group");
  let shown = [];
  let chosen = 0;

  function element(name, text, attributes) {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  }

  const orders = {
    hardest: (a, b) => a.auc - b.auc,
    easiest: (a, b) => b.auc - a.auc,
    longest: (a, b) => b.size[0] - a.size[0],
    images: (a, b) => b.size[1] - a.size[1],
    id: () => 0,
  };

  function matches(one, words) {
    const text = (one.id + " " + one.sentences.map((s) => s[1]).join(" ")).toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function refresh() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = shown[chosen];
    shown = data.documents
      .filter((one) => (!group || !group.value || one.group === group.value) && matches(one, words))
      .sort((a, b) => orders[order.value](a, b) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    list.replaceChildren(...shown.map(option));
    status.textContent = `${shown.length} of ${data.documents.length} documents`;
    select(Math.max(0, shown.indexOf(kept)));
  }

  function option(one, place) {
    const item = element("li", null, { role: "option", id: `option-${place}` });
    if (one.auc !== null) item.append(element("b", one.auc.toFixed(1)), " ");
    item.append(one.id);
    item.addEventListener("click", () => { select(place); list.focus(); });
    return item;
  }

  function select(place) {
    chosen = place;
    for (const item of list.children) item.setAttribute("aria-selected", "false");
    const item = list.children[place];
    if (!item) {
      list.removeAttribute("aria-activedescendant");
      panel.replaceChildren(element("p", "No document matches."));
      return;
    }
    item.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", item.id);
    // Within the list alone: scrollIntoView would move the whole page as well.
    const above = item.offsetTop - list.offsetTop;
    if (above < list.scrollTop) list.scrollTop = above;
    else if (above + item.offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = above + item.offsetHeight - list.clientHeight;
    panel.replaceChildren(...detail(shown[place]));
  }

  function detail(one) {
    const parts = [element("h3", one.id)];
    const facts = [`${one.size[0]} sentences`, `${one.size[1]} images`];
    if (one.auc !== null) facts.unshift(`AUC ${one.auc.toFixed(1)}`);
    facts.push(one.true === null ? "true links not known" : `${one.true.length} true links`);
    parts.push(element("p", facts.join(", ")));
    if (one.credit) parts.push(element("p", one.credit, { class: "soft" }));
    parts.push(element("h4", "Predicted links, most confident first"), links(one));
    parts.push(element("h4", "Similarity matrix"), matrix(one));
    const hidden = [];
    if (one.sentences.length < one.size[0])
      hidden.push(`${one.size[0] - one.sentences.length} sentences`);
    if (one.images.length < one.size[1]) hidden.push(`${one.size[1] - one.images.length} images`);
    if (hidden.length)
      parts.push(element("p", `Not shown: ${hidden.join(" and ")} without links, the least similar.`,
        { class: "soft" }));
    return parts;
  }

  const pair = (sentence, image) => `${sentence} ${image}`;

  function links(one) {
    const truth = new Set((one.true || []).map(([s, v]) => pair(s, v)));
    const text = new Map(one.sentences);
    const made = element("ol");
    for (const [sentence, image, score] of one.predicted) {
      const item = element("li");
      item.append(`${score.toFixed(2)}: image ${image + 1} and sentence ${sentence + 1}`);
      if (truth.has(pair(sentence, image))) item.append(element("span", " ✓ true", { class: "mark" }));
      if (text.get(sentence)) item.append(element("span", ` ${text.get(sentence)}`, { class: "soft" }));
      made.append(item);
    }
    return one.predicted.length ? made : element("p", "None: no similarity is above zero.");
  }

  function matrix(one) {
    const truth = new Set((one.true || []).map(([s, v]) => pair(s, v)));
    const predicted = new Set(one.predicted.map(([s, v]) => pair(s, v)));
    const values = one.matrix.flat();
    const low = Math.min(...values), high = Math.max(...values);
    const table = element("table", null, { class: "matrix" });
    const head = element("tr");
    head.append(element("td", "sentence", { class: "soft" }));
    for (const [place, id, number] of one.images) head.append(imageHead(place, id, number));
    const body = element("tbody");
    one.sentences.forEach(([sentence, text], row) => {
      const line = element("tr");
      const name = element("th", null, { scope: "row", class: text ? "text" : "" });
      name.append(element("b", sentence + 1), ` ${text}`);
      line.append(name);
      one.images.forEach(([image], column) => {
        const value = one.matrix[row][column];
        const key = pair(sentence, image);
        line.append(cell(value, (value - low) / (high - low || 1), truth.has(key), predicted.has(key)));
      });
      body.append(line);
    });
    const top = element("thead");
    top.append(head);
    table.append(element("caption", "Cosine of each sentence and image", { class: "hidden" }));
    table.append(top, body);
    const scroll = element("div", null,
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Similarity matrix" });
    scroll.append(table);
    return scroll;
  }

  function imageHead(place, id, number) {
    const made = element("th", null, { scope: "col" });
    if (number >= 0) made.append(element("img", null, { src: data.pictures[number], alt: "" }));
    made.append(element("b", `image ${place + 1}`), element("span", id, { class: "id" }));
    return made;
  }

  function cell(value, share, isTrue, isPredicted) {
    const classes = [`h${Math.round(9 * share)}`];
    if (isTrue) classes.push("t");
    if (isPredicted) classes.push("p");
    const made = element("td", (value / 100).toFixed(2), { class: classes.join(" ") });
    if (isPredicted) made.append(" ●", element("span", " predicted", { class: "hidden" }));
    if (isTrue) {
      made.append(element("span", " ✓", { class: "mark" }),
        element("span", " true link", { class: "hidden" }));
    }
    return made;
  }

  list.addEventListener("keydown", (event) => {
    const last = shown.length - 1;
    const places = {
      ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 10, PageUp: chosen - 10,
      Home: 0, End: last,
    };
    if (!(event.key in places) || last < 0) return;
    event.preventDefault();
    select(Math.min(last, Math.max(0, places[event.key])));
  });
  for (const control of [filter, order, group]) {
    if (control) control.addEventListener("input", refresh);
  }
  refresh();
})();
