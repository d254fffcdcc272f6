"""Splits Rust source into tokens; used by scripts/module-graph and scripts/check-words."""

import re

TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*)
      | (?P<block>/\*)
      | (?P<raw>\b(?:br|cr|r)(?P<hashes>\#*)")
      | (?P<string>\b[bc]"|")
      | (?P<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'])')
      | (?P<lifetime>'\w+)
      | (?P<ident>\$?(?:r\#)?[A-Za-z_]\w*)
      | (?P<number>\d[\w]*)
      | (?P<path>::)
      | (?P<other>.)""",
    re.X | re.S,
)
BLOCK = re.compile(r"/\*|\*/")
STRING = re.compile(r'(?:[^"\\]|\\.)*"', re.S)


def scan(text):
    """(kind, text, line) of every token, comment and string; spaces are left out."""
    at, line = 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        kind, end = match.lastgroup, match.end()
        if kind in ("raw", "hashes"):
            kind = "string"
            close = text.find('"' + match.group("hashes"), end)
            end = len(text) if close < 0 else close + 1 + len(match.group("hashes"))
        elif kind == "string":
            close = STRING.match(text, end)
            end = close.end() if close else len(text)
        elif kind == "block":
            kind, depth = "comment", 1
            while depth:
                inner = BLOCK.search(text, end)
                end = inner.end() if inner else len(text)
                depth = depth + (1 if inner.group() == "/*" else -1) if inner else 0
        if kind != "space":
            yield kind, text[at:end], line
        line += text.count("\n", at, end)
        at = end


def tokens(text):
    """(text, line) of identifiers and punctuation."""
    return [(word.removeprefix("r#"), line) for kind, word, line in scan(text) if kind in ("ident", "path", "other")]
