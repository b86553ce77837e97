// Text and images that are pasted, or typed and added, instead of a file.

import { byId, count, element, say } from "./dom.js";
import { pastedUpload } from "./intake.js";

export class Pasted {
  // take is given files that are articles; link, what was put together here.
  constructor(take, link) {
    this.take = take;
    this.images = [];
    document.addEventListener("paste", (event) => this.paste(event));
    byId("text").addEventListener("input", () => this.setReady());
    byId("add-images").addEventListener("click", () => byId("images").click());
    byId("images").addEventListener("change", () => {
      this.add([...byId("images").files]);
      byId("images").value = "";
    });
    byId("paste-form").addEventListener("submit", (event) => {
      event.preventDefault();
      link(pastedUpload(byId("text").value, this.images));
    });
  }

  paste(event) {
    if (byId("start").hidden) return;
    const files = [...event.clipboardData.files];
    const images = files.filter((file) => file.type.startsWith("image/"));
    const text = event.clipboardData.getData("text/plain");
    if (files.length > images.length) {
      event.preventDefault();
      this.take(files.map((file) => ({ file, path: file.name })));
    } else if (images.length) {
      event.preventDefault();
      this.add(images);
      say(`${count(images.length, "image")} pasted.`);
    } else if (text && event.target !== byId("text")) {
      event.preventDefault();
      byId("paste").open = true;
      byId("text").value += text;
      byId("text").focus();
      this.setReady();
    }
  }

  add(images) {
    byId("paste").open = true;
    this.images.push(...images);
    this.draw();
  }

  draw() {
    for (const image of byId("pasted").querySelectorAll("img")) URL.revokeObjectURL(image.src);
    byId("pasted").replaceChildren(...this.images.map((file, index) => {
      const remove = element("button", "×", {
        type: "button", "aria-label": `Remove image ${index + 1}`,
      });
      remove.addEventListener("click", () => {
        this.images.splice(index, 1);
        this.draw();
        byId("add-images").focus();
      });
      const item = element("li");
      const address = URL.createObjectURL(file);
      item.append(element("img", null, { src: address, alt: `Image ${index + 1}` }), remove);
      return item;
    }));
    this.setReady();
  }

  setReady() {
    const ready = byId("text").value.trim() && this.images.length;
    byId("paste-form").querySelector("[type=submit]").disabled = !ready;
  }
}
