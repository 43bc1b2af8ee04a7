"""Values of secret keys: ``password=...``, ``--api-key ...``, ``"client_secret": "..."``, ``Cookie: ...``.

A key is told by the end of its name, so that ``password_file`` and ``token_count`` are none. Its value is
read in the form that it is written in, whatever carries it: assignment, header, JSON (also inside of JSON),
YAML, a command line, a list of words, XML. Keys and forms are apart: a new key holds in all forms, a new form
for all keys. Reading is linear: a key is found by one pattern, its value by one look from there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

# Secret whatever the value looks like; the word may be the end of a longer one (PGPASSWORD).
_ANYWHERE = (
    r"pass(?:word|wd|phrase)s?",
    r"secrets?",
    r"secret[_-]?(?:access[_-]?)?(?:key|token|value)s?",
    r"api[_-]?keys?",
)
_OF_KEYS = "access|private|auth|account|encryption|signing|master|license|subscription|webhook|ssh|hmac|jwt"
_OF_TOKENS = (
    "access|auth|refresh|session|security|bearer|oauth2?|api|login|csrf|xsrf|bot|deploy|personal|registration|"
    "bootstrap|hf|hub|github|gh|gitlab|ngc|wandb|slack|npm|pypi|vault|sas|id"
)
# The same for a word, or words joined by _ and -.
_WORDS = (
    rf"(?:{_OF_KEYS})[_-]?keys?",
    rf"(?:{_OF_TOKENS})[_-]?tokens?",
    r"(?:db|user|smtp|mysql|pg|redis|admin|http|proxy|login|ldap|ftp|mongo|rabbitmq)[_-]?(?:pass|pwd)",
    r"credentials?",
    r"passcode",
)
# A key of tokenizers and the like too: its value has to look like a secret.
_WEAK = (r"token", r"auth")
_REST_OF_LINE = (r"(?:set-)?cookies?",)
_WITH_SCHEME = (r"(?:proxy-)?authorization",)
Kind = Literal["strong", "word", "weak", "rest", "scheme"]
_KINDS: tuple[Kind, ...] = get_args(Kind)

# Of a word; also accessToken in userAccessToken, and behind a colour of a terminal.
_START = r"(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z]))|(?<=[0-9\[;]m))"
_KEY = "|".join((
    rf"(?P<strong>{'|'.join(_ANYWHERE)})",
    *(
        rf"{_START}(?P<{kind}>{'|'.join(keys)})"
        for kind, keys in (
            ("word", _WORDS), ("weak", _WEAK), ("rest", _REST_OF_LINE), ("scheme", _WITH_SCHEME)
        )
    ),
))  # fmt: skip
_QUOTE = r"\\{0,3}[\"']"  # also as it stands in a JSON string, and in one inside of that
_BLANK = r"[ \t]"
# What stands between a key and its value.
_JOINS = "|".join((
    rf"(?P<assign>(?:{_QUOTE}\]?)?{_BLANK}{{0,3}}(?:=>|:=|[=:]){_BLANK}{{0,8}})",
    # name: DB_PASSWORD, value: x; [RECORD] SET name=HF_TOKEN value=x
    rf"(?P<entry>(?:{_QUOTE})?,?\s{{1,40}}(?:{_QUOTE})?value(?:{_QUOTE})?{_BLANK}{{0,3}}[=:]{_BLANK}{{0,3}})",
    rf"(?P<listed>{_QUOTE}{_BLANK}{{0,3}},{_BLANK}{{0,3}})",  # ["--api-key", "x"], (b'cookie', b'x')
    rf"(?P<option>{_BLANK}{{1,3}})",  # --password x, setenv PASSWORD x, passphrase "x"
    r"(?P<xml>>)",
))  # fmt: skip
_FOUND = re.compile(rf"(?i)(?<![/\\])(?:{_KEY})(?:{_JOINS})")

_OPENED = re.compile(rf"(?:(?:[bru]{{1,2}})?|SecretStr\()(?P<quote>{_QUOTE})", re.IGNORECASE)
_LONGEST = 4_000  # characters of one value
_SHORTEST = 3
_COUNT_DIGITS = 8
_PROBE = "Abcdef012345"  # looks like a secret
_IN_QUOTES = {
    '"': re.compile(rf"(?:[^\"\\\n]|\\[^\n]){{0,{_LONGEST}}}"),
    "'": re.compile(rf"(?:[^'\\\n]|\\[^\n]){{0,{_LONGEST}}}"),
}
_IN_LIST = re.compile(rf"[^\]\n]{{0,{_LONGEST}}}")
_IN_TAG = re.compile(rf"[^<\n]{{1,{_LONGEST}}}")
_LINE = re.compile(rf"[^\n]{{1,{_LONGEST}}}")
# Up to a blank, a quote or what ends an argument; a comma inside of a password is a part of it.
_BARE = re.compile(
    r"(?:[^\s\"'\\,;&)\]}<]|<(?!/)|\\(?![nrt\"'\\])"
    r"|[,;&)\]}](?![\s,;&)\]}\"'\\]|$|[A-Za-z_][\w.-]{0,60} ?[=:]))"
    rf"{{1,{_LONGEST}}}"
)
_SCHEME = re.compile(r"(?:basic|bearer|token|negotiate|apikey|aws4-hmac-sha256)[ \t]+", re.IGNORECASE)
_SECRET_LOOK = re.compile(r"(?=[\w+/.~=-]{0,99}\d)(?=[\w+/.~=-]{0,99}[A-Za-z])(?!0x)[\w+/.~=-]{12,}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What gives nothing away: absent values, types, words of a message; other redactions, references, code.
_NOTHING = _words("""
    none null nil true false yes no not is was are has have in of for and or the a an to from with must may
    can cannot should require required missing invalid empty unset undefined incorrect wrong expired rejected
    denied failed failure error unknown optional enabled disabled default str string byte bytes int integer
    bool object any type list dict secretstr field input output valid accepted provided given found set
    authentication protected permission
""")
_REFERENCE = re.compile(
    r"\[?redacted|request-text-\d|\*+|<|\$[A-Z_{(]|%[({]|[{(\[]"
    r"|(?:self|cls|args|opts|options|config|cfg|settings|kwargs|os|env|environ)[.\[]|get\w{0,20}\(|0x[0-9a-f]"
    r"|(?:optional|union|list|dict|secretstr)[\[(]",
    re.IGNORECASE,
)
# token= of a tokenizer.
_NO_SECRET_BEFORE = re.compile(
    r"(?:eos|bos|pad|unk|sep|cls|mask|stop|start|end|image|audio|video|next|last|first|prev(?:ious)?|special"
    r"|draft|bonus|sampled?|new|per|max|each|any|single|continue)[_-]$",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """Where in a text a secret stands."""

    first: int
    end: int


def key_values(text: str) -> Iterator[Span]:
    """The values of all secret keys of a text, in order."""
    at = 0
    while (found := _FOUND.search(text, at)) is not None:
        span = _value(text, found)
        if span is None:
            at = found.start() + 1
        else:
            yield span
            at = max(span.end, found.end())


def _value(text: str, found: re.Match[str]) -> Span | None:
    kind: Kind = next(one for one in _KINDS if found[one] is not None)
    option = _is_option(text, found.start())
    if not _joined(text, found, option=option):
        return None
    if kind == "weak" and _NO_SECRET_BEFORE.search(text, max(0, found.start() - 12), found.start()):
        return None
    form: Kind = "strong" if option else kind  # an option of that name is for a key
    span = _read(text, found.end(), form, in_tag=found["xml"] is not None)
    if span is None or not _is_secret(
        text[found.start() : found.end(kind)], text[span.first : span.end], form
    ):
        return None
    return span


def _joined(text: str, found: re.Match[str], *, option: bool) -> bool:
    """Whether the characters behind the key join it with a value here."""
    if found["option"] is not None:
        quoted = text[found.end() : found.end() + 1] in {'"', "'"} and found[0].lower().startswith("pass")
        return quoted or ((option or _is_set(text, found.start())) and not text.startswith("-", found.end()))
    if found["xml"] is not None:
        return re.search(r"<[\w:.-]{0,60}$", text[max(0, found.start() - 62) : found.start()]) is not None
    return True


def _is_option(text: str, at: int) -> bool:
    """Whether the word that goes on at a place begins as an option of a command line."""
    word = re.search(r"(?:^|[\s\"'=])--?[\w-]{0,60}$", text[max(0, at - 64) : at])
    return word is not None


def _is_set(text: str, at: int) -> bool:
    """Whether the word that goes on at a place is set to the next one, as commands and Dockerfiles do it."""
    return (
        re.search(r"(?:\bsetenv|\bENV|\bconfigure set) [\w.-]{0,60}$", text[max(0, at - 80) : at]) is not None
    )


def _read(text: str, at: int, kind: Kind, *, in_tag: bool) -> Span | None:
    """One value from ``at`` on."""
    if in_tag:
        return _span(_IN_TAG.match(text, at))
    opened = _OPENED.match(text, at)
    if opened is not None:
        return _quoted(text, opened.end(), opened["quote"])
    if text.startswith("[", at) and kind in {"strong", "word"}:
        return _span(_IN_LIST.match(text, at + 1))
    if kind == "weak" and _SECRET_LOOK.match(text, at) is None:
        return None
    if kind == "rest":
        return _span(_LINE.match(text, at))
    if kind == "scheme" and (scheme := _SCHEME.match(text, at)) is not None:
        at = scheme.end()
    elif kind == "scheme" and text[at : at + 6].lower() == "digest":
        return _span(_LINE.match(text, at))
    return _span(_BARE.match(text, at))


def _quoted(text: str, at: int, quote: str) -> Span:
    """To the quote that it began with, or to the end of the line where that is cut off."""
    if len(quote) == 1:
        inside = _IN_QUOTES[quote].match(text, at)
        return Span(at, inside.end() if inside is not None else at)
    line_end = text.find("\n", at)
    limit = len(text) if line_end < 0 else line_end
    end = text.find(quote, at, limit)
    return Span(at, limit if end < 0 else end)


def _span(found: re.Match[str] | None) -> Span | None:
    return None if found is None else Span(found.start(), found.end())


def _is_secret(key: str, value: str, kind: Kind) -> bool:
    key, value = key.lower(), value.strip()
    word = value.rstrip(".,;:!?)]}").lower()
    if len(value) < _SHORTEST or word in _NOTHING or word == key or _REFERENCE.match(value):
        return False
    if kind == "weak":
        return _SECRET_LOOK.match(value) is not None
    counted = key.endswith(("s", "token"))  # keys and tokens have numbers, and are counted
    return not (counted and word.isdecimal() and len(word) <= _COUNT_DIGITS)


def is_key_option(word: str) -> bool:
    """Whether a word of a command line is an option whose value, the next word, is a secret."""
    return word.startswith("-") and any(span.first > len(word) for span in key_values(f"{word} {_PROBE}"))
