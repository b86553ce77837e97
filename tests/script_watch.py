"""Sees what a page in Chromium does that it should not: scripts, requests, markup out of text.

Everything that leaves the machine has to go through a proxy of ours, so that even a connection
that is only prepared is seen. A page that was looked at is also asked to call `alert` once itself:
a watch that does not hear of it would see nothing else either.
"""

import re
import socket
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")
PROBE = "the watch is awake"

#: What Chromium asks for of its own accord, whatever it shows.
_OWN = re.compile(r"[ ./](googleapis|google|gvt1)\.com[:/]")
_SPIES = """
for (const name of ["alert", "confirm", "prompt", "print", "open"]) {
  const spy = (...given) => { ran(`${name}(${given.join()})`); return true; };
  Object.defineProperty(window, name, { value: spy, configurable: false, writable: false });
}
"""
#: What our pages are made of; anything else was text.
_ELEMENTS = [
    "html", "head", "meta", "title", "style", "script", "link", "body", "a", "header", "main",
    "nav", "section", "div", "span", "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li",
    "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "td", "th", "figure",
    "figcaption", "img", "button", "form", "label", "input", "output", "select", "option",
    "textarea", "details", "summary", "article", "aside", "footer", "blockquote", "pre", "code",
    "strong", "b", "small", "em", "bdi", "noscript", "progress", "iframe", "svg", "rect", "line",
]  # fmt: skip
_SHAPE = """elements => {
  const known = new Set(elements), wrong = [];
  const file = "page/[a-z]+[.][a-z]+";
  const addresses = {
    href: new RegExp(`^(#[a-z0-9-]*|${file}|https://(openstax|github)[.][a-z]+/[A-Za-z0-9_/-]+`
      + "|[a-z-]+[.](links[.])?(html|txt))$"),
    src: new RegExp(`^(data:image/(jpeg|png);base64,[A-Za-z0-9+/=]*|${file}|blob:http:.*)$`),
    style: /^[^(<>"\\@]*$/,
  };
  const never = new RegExp("^(on.*|action|formaction|data|srcset|ping|poster|background|cite"
    + "|xlink:href|manifest|name)$");
  for (const one of document.querySelectorAll("*")) {
    if (!known.has(one.localName)) wrong.push(`<${one.localName}>`);
    for (const { name, value } of one.attributes) {
      const ours = (one.localName === "meta" && name === "name")
        || (name === "srcdoc" && one.sandbox.value === "allow-scripts");
      const bad = never.test(name) || (addresses[name] && !addresses[name].test(value));
      if (bad && !ours) wrong.push(`<${one.localName} ${name}=${value.slice(0, 80)}>`);
    }
  }
  return wrong;
}"""


class Proxy:
    """Takes connections for anywhere else, remembers what they wanted, and lets none through."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked = Counter()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    line = connection.recv(4096).split(b"\r\n")[0].decode("latin-1")
                    self.asked[line[:200]] += 1
                    connection.sendall(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    pass

    def close(self):
        self.socket.close()


class Watch:
    """One browser; `wrong` is what pages did, with the words of what was looked at then."""

    def __init__(self, browser, proxy, home=None):
        self.browser, self.proxy = browser, proxy
        self.home = home  # the service; its own paths may be asked for
        self.wrong = []
        self.looking = "nothing"
        self.heard = 0
        self.looks = 0
        #: Words of the console that are brought about on purpose.
        self.expected = ()
        self.context = self._context()

    def _context(self):
        context = self.browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(60_000)
        context.expose_binding("ran", lambda _, call: self._ran(call))
        context.add_init_script(_SPIES)
        context.on("page", self._watch_page)
        context.on("request", lambda request: self._request(request.url))
        return context

    def _watch_page(self, page):
        page.on("console", lambda message: self.note("console", message.text))
        page.on("pageerror", lambda error: self.note("error", str(error)))
        page.on("dialog", lambda dialog: (self.note("dialog", dialog.message), dialog.dismiss()))
        page.on("popup", lambda other: self.note("popup", other.url))

    def _ran(self, call):
        if call == f"alert({PROBE})":
            self.heard += 1
        elif not call.startswith("confirm(Your corrections are not downloaded yet"):
            self.note("ran", call)

    def _request(self, address):
        if address.startswith(("data:", "blob:", "about:srcdoc", "about:blank")):
            return
        path = address.removeprefix(self.home) if self.home else None
        ours = ("/page/", "/v1/", "/readyz", "/#", "/?")
        if path is not None and path != address and (path == "/" or path.startswith(ours)):
            return
        if address != self.allowed:
            self.note("request", address)

    allowed = None  # the one file that is looked at

    def note(self, kind, words):
        if not any(expected in words for expected in self.expected):
            self.wrong.append(f"{kind} in {self.looking}: {words[:200]}")

    def open(self, address, looking):
        """A new page at an address."""
        self.looking, self.allowed = looking, address
        page = self.context.new_page()
        page.goto(address)
        return page

    def look(self, page):
        """See whether every frame is made of our own markup, and whether we would hear."""
        for frame in page.frames:
            for wrong in frame.evaluate(_SHAPE, _ELEMENTS)[:20]:
                self.note("markup", wrong)
            before = self.heard
            frame.evaluate("words => alert(words)", PROBE)
            if self.heard != before + 1:
                self.note("watch", "the page's own call of alert was not heard")
            self.looks += 1

    def external(self):
        """What was asked of other servers."""
        return {one: count for one, count in self.proxy.asked.items() if not _OWN.search(one)}


@contextmanager
def watching(home=None):
    """A watch with a browser of its own."""
    from playwright.sync_api import sync_playwright

    proxy = Proxy()
    with sync_playwright() as started:
        # Of its own accord Chromium asks no proxy for this machine; playwright's option would.
        arguments = ["--no-sandbox", f"--proxy-server={proxy.address}"]
        browser = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield Watch(browser, proxy, home)
        finally:
            browser.close()
            proxy.close()


_PEN = """async payloads => {
  const pen = document.createElement("div");
  const loaded = payloads.map(([name, payload]) => {
    const frame = document.createElement("iframe");
    frame.name = name;
    frame.srcdoc = payload;
    pen.append(frame);
    return new Promise((resolve) => frame.addEventListener("load", resolve));
  });
  document.body.replaceChildren(pen);
  const longest = new Promise((resolve) => setTimeout(resolve, 4_000)); // some never load
  await Promise.race([Promise.all(loaded), longest]);
}"""
# Handlers that wait for somebody: every element is clicked at, pointed at and typed into.
_POKE = """() => {
  // From the prototype: a form's fields can stand in the place of its properties.
  const attributes = Object.getOwnPropertyDescriptor(Element.prototype, "attributes").get;
  const click = HTMLElement.prototype.click;
  for (const frame of document.querySelectorAll("iframe")) {
    let inside = null;
    try { inside = frame.contentDocument; } catch { continue; }
    for (const one of inside ? Document.prototype.querySelectorAll.call(inside, "*") : []) {
      for (const { name } of [...attributes.call(one)]) {
        if (!/^on/i.test(name)) continue;
        EventTarget.prototype.dispatchEvent.call(one, new Event(name.slice(2).toLowerCase()));
      }
      if (one.localName === "a" && /^javascript:/i.test(one.href)) click.call(one);
    }
  }
}"""


def careless(watch, payloads, at_once=500, seconds=0.5):
    """The control: the same payloads in pages without escape and policy; the numbers that ran.

    Gives those that ran by themselves, those that ran once they were poked, and how many servers
    were asked for how many times.
    """
    ran, poked = set(), set()
    into = ran

    def hear(source, call):
        frame = source["frame"]
        while frame.parent_frame and not frame.name.startswith("payload-"):
            frame = frame.parent_frame
        if frame.name.startswith("payload-"):
            into.add(int(frame.name.removeprefix("payload-")))

    context = watch.browser.new_context()
    context.expose_binding("ran", hear)
    context.add_init_script(_SPIES)
    context.on("dialog", lambda dialog: dialog.dismiss())
    for start in range(0, len(payloads), at_once):
        page = context.new_page()
        page.goto("about:blank")
        some = payloads[start : start + at_once]
        named = [(f"payload-{n}", text) for n, text in enumerate(some, start)]
        into = ran
        page.evaluate(_PEN, named)
        page.wait_for_timeout(1000 * seconds)
        into = poked
        page.evaluate(_POKE)
        page.wait_for_timeout(200)
        for other in context.pages:
            other.close()
    context.close()
    return ran, poked - ran, sum(watch.external().values())
