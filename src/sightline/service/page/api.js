// Asking the service. What it refuses becomes a Problem: words for people, and the faults it named.

let token = null;

export function setToken(text) {
  token = text;
}

export class Problem extends Error {
  constructor(status, words, faults = [], retryAfter = null) {
    super(words);
    this.status = status;
    this.faults = faults;
    this.retryAfter = retryAfter;
  }
}

const TITLES = {
  401: "The service asks for a token.",
  404: "The service does not have that.",
  413: "This is more than the service takes.",
  429: "The service is busy.",
  503: "The service cannot do it now.",
};

export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service cannot be reached. Is it still running?");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function askJson(path, options) {
  return (await ask(path, options)).json();
}

export function postJson(path, value, options = {}) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { ...options, method: "POST", headers, body: JSON.stringify(value) });
}

async function problemOf(response) {
  let details = {};
  if ((response.headers.get("Content-Type") || "").includes("json")) {
    details = await response.json().catch(() => ({}));
  }
  const faults = Array.isArray(details.errors) ? details.errors : [];
  const title = TITLES[response.status] || `The service answered with an error (${response.status}).`;
  const words = typeof details.detail === "string" && details.detail ? details.detail : title;
  const after = Number(response.headers.get("Retry-After"));
  return new Problem(response.status, words, faults, after > 0 ? after : null);
}
