// What a person gives becomes one upload: an article, and the images beside it.

const ARTICLE = /\.(html?|xhtml|md|markdown|pdf|docx|docm|epub|txt|zip)$/i;
// Articles that name their images, rather than hold them.
const NAMES_IMAGES = /\.(html?|xhtml|md|markdown)$/i;
const IMAGE = /\.(jpe?g|png|gif|webp|avif|bmp|tiff?)$/i;
// Of several articles in a folder, the one that is most likely meant.
const LIKELY = /(^|\/)(index|article|readme|main)\.[a-z]+$/i;
const MOST_FILES = 2000;

const isImage = (file) => file.type.startsWith("image/") || IMAGE.test(file.name);

// files: [{file, path}]; gives {article, images, note}, or {images} alone.
export function sortFiles(files) {
  const visible = files.filter(({ path }) => !/(^|\/)(\.|__MACOSX)/.test(path));
  const images = visible.filter(({ file }) => isImage(file));
  const articles = visible.filter(({ file }) => !isImage(file) && ARTICLE.test(file.name));
  const depth = ({ path }) => path.split("/").length;
  articles.sort((a, b) => depth(a) - depth(b) || LIKELY.test(b.path) - LIKELY.test(a.path)
    || a.path.localeCompare(b.path));
  const [article] = articles;
  if (!article) return { article: null, images };
  const note = articles.length > 1
    ? `${article.path} was taken; ${articles.length - 1} more left out.` : null;
  return { article, images, note };
}

export const namesImages = ({ file }) => NAMES_IMAGES.test(file.name);

// Of many images in a folder, those that the article names; all, where it names none.
export async function withNamedImages(upload) {
  const { article, images } = upload;
  if (images.length < 2 || !namesImages(article)) return upload;
  const text = await article.file.text();
  const named = images.filter(({ file: { name } }) => text.includes(name)
    || text.includes(encodeURI(name)) || text.includes(encodeURIComponent(name)));
  return { article, images: named.length ? named : images };
}

export function fromInput(input) {
  return [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

// A drop's items are only there until the event ends, so that the entries are taken at once.
export async function fromDrop(transfer) {
  const entries = [...transfer.items].filter((item) => item.kind === "file")
    .map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (found.length >= MOST_FILES) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ file, path: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A reader gives at most a hundred at a time, and none at the end.
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const one of some) await walk(one, found);
  }
}

export function pastedUpload(text, images) {
  const article = new File([text], "pasted.txt", { type: "text/plain" });
  return {
    article: { file: article, path: "pasted.txt" },
    images: images.map((file, index) => ({ file, path: `image-${index + 1}${suffix(file)}` })),
  };
}

function suffix(file) {
  const kind = (file.type.split("/")[1] || "png").replace(/[^a-z0-9]/g, "");
  return `.${kind === "jpeg" ? "jpg" : kind}`;
}

// The form that POST /v1/link takes. Paths are those from the folder of the article.
export function formOf(upload, fields = {}) {
  const form = new FormData();
  const folder = upload.article.path.slice(0, upload.article.path.lastIndexOf("/") + 1);
  const inside = (path) => (path.startsWith(folder) ? path.slice(folder.length) : path);
  form.append("file", upload.article.file, inside(upload.article.path));
  for (const { file, path } of upload.images) form.append("images", file, inside(path));
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}
