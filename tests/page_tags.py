"""What tests look at in a page: its tags, its code and its text."""

import base64
import hashlib
from html.parser import HTMLParser


class Tags(HTMLParser):
    """The tags of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.code, self.text, self._inside = [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            self.code.append((self._inside, self.tags[-1][1].get("type"), data))
        else:
            self.text.append(data)

    def named(self, tag, css=""):
        found = [attributes for name, attributes in self.tags if name == tag]
        return [a for a in found if not css or css in (a.get("class") or "").split()]

    def rules(self):
        """What the policy in the head says, by what it speaks of."""
        (policy,) = [meta["content"] for meta in self.named("meta") if "http-equiv" in meta]
        return dict(rule.strip().split(" ", 1) for rule in policy.split(";"))


def check_policy(page):
    """The policy allows the page's own scripts and styles, each by its hash, and nothing else."""
    rules = page.rules()
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert rules.pop("img-src") == "data:"
    hashes = {}
    for tag, kind, code in page.code:
        if kind is None:
            digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
            hashes.setdefault(f"{tag}-src", []).append(f"'sha256-{digest}'")
    assert rules == {rule: " ".join(of_tag) for rule, of_tag in hashes.items()}


def check_markup_is_ours(page):
    """No text became a script, a handler or a style, and pictures are in the page itself."""
    scripts = [(kind, code) for tag, kind, code in page.code if tag == "script"]
    assert [kind for kind, _ in scripts] == ["application/json", None]
    assert "owned" not in scripts[1][1]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert all(image["src"].startswith("data:image/") for image in page.named("img"))
