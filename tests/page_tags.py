"""What tests look at in a page: its tags, its code and its text."""

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
