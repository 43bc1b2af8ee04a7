"""Secrets in texts: those that show by their own form, values of keys, passwords behind a user's name."""

from __future__ import annotations

import re
from functools import partial

from analyzer.report.redact_keys import key_values

_MIXED = r"(?=[\w+/.~=-]{0,99}\d)(?=[\w+/.~=-]{0,99}[A-Za-z])[\w+/.~=-]{12,}"  # letters and digits: no number
_BLOCK = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
_HOST = r"(?:[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}|[\w-]{1,63}:\d{2,5}(?!\d)|localhost\b)"
_URL_KEYS = r"[a-z-]{0,30}(?:token|key|sig|signature|credential|secret|auth|jwt)"
_WORD_OR_QUOTED = (
    r"'[^'\n]{1,2000}'?|\"[^\"\n]{1,2000}\"?|[^\s\"'-]{1,200}=\S{1,2000}"  # -b reads a file without a =
)
_COMMANDS = r"(?:mysql|mariadb)\w{0,20}\b[^\n|;]{0,200}? -p|sshpass -p ?|redis-cli\b[^\n|;]{0,200}? -a ?"
# Their form shows them. Group ``x`` is what goes; else the whole match.
_FORMS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("private-key", rf"(?s){_BLOCK}"),
        ("private-key", r"(?m)^(?P<x>[A-Za-z0-9+/]{64}=*)$"),  # a line out of the middle of one
        ("bearer-token", r"(?i)\bbearer (?P<x>[a-z0-9._~+/=-]{8,})"),
        ("jwt", r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*"),
        ("aws-key", r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"),
        ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,})"),
        ("gitlab-token", r"\bglpat-[\w-]{16,}"),
        ("hf-token", r"\bhf_[A-Za-z0-9]{16,}"),
        ("api-key", r"\b(?:sk|pk|rk)-[\w-]{16,}"),
        ("api-key", r"\b[sr]k_(?:live|test)_\w{10,}"),
        ("nvidia-key", r"\bnvapi-[\w-]{16,}"),
        ("google-key", r"\bAIza[\w-]{30,}"),
        ("slack-token", r"\bxox[abeprs]-[\w-]{10,}"),
        # To the last @ in front of the host: a password may hold one.
        ("url-password", r"://[^\s/:@\"'\[]{0,80}:(?P<x>[^\s/\"'<>\[]{1,200})@"),
        ("url-password", rf"://(?P<x>{_MIXED})@"),
        # Without a scheme; name:tag@sha256:... is an image.
        (
            "url-password",
            rf"(?<![\w/@:.\[-])[A-Za-z][\w.-]{{0,63}}:(?P<x>[^\s/@:\"'\[]{{3,200}})@(?!sha\d)(?={_HOST})",
        ),
        ("url-secret", rf"(?i)[?&]{_URL_KEYS}=(?P<x>[^\s&\"'#]{{6,}})"),
        ("password", r"\bauth ?= ?\((?P<x>[\"'][^)\n]{1,300})\)"),  # requests: auth=("user", "password")
        ("password", rf"\b(?:{_COMMANDS})(?P<x>[^\s\"'=-][^\s\"']{{2,200}})"),
        ("password", r"(?i)\blogin\s{1,5}\S{1,64}\s{1,5}password\s{1,5}(?P<x>\S{1,200})"),  # .netrc
        (
            "cookie",
            rf"\bcurl\b[^\n]{{0,300}}?[ \"'](?:-b|--cookie)[ =]{{0,3}}(?P<x>{_WORD_OR_QUOTED})",
        ),
    )
)
# ``-u user:password`` of curl and others. A user and a group by number (docker) and a path are none.
_USER = re.compile(
    r"(?<![^\s\"'=])(?:-[a-zA-Z]{0,4}[uU]|--(?:proxy-)?user)(?:[ \t=]{1,3}|[\"'], ?)?(?P<quote>[\"']?)"
    r"(?!\d{1,10}:\d{1,10}(?![^\s\"'])|[A-Za-z]:[\\/]|\w{1,20}://)[\w.@+\\%-]{1,80}:"
)
_IN_QUOTES = {'"': re.compile(r"[^\"\n]{1,400}"), "'": re.compile(r"[^'\n]{1,400}")}
_WORD = re.compile(r"[^\s\"']{2,400}")


def without_secrets(text: str) -> str:
    """The text with a placeholder for each secret, and as many lines as before."""
    for name, pattern in _FORMS:
        text = pattern.sub(partial(_secret, name), text)
    text = _without_passwords(text)
    parts, done = list[str](), 0
    for first, end in key_values(text):
        parts += [text[done:first], "[redacted:secret]"]
        done = end
    return "".join([*parts, text[done:]])


def _without_passwords(text: str) -> str:
    parts, done = list[str](), 0
    for found in _USER.finditer(text):
        quote = found["quote"]
        value = (_IN_QUOTES[quote] if quote else _WORD).match(text, found.end())
        if value is None or found.start() < done or value.group().startswith("[redacted:"):
            continue
        parts += [text[done : found.end()], "[redacted:password]"]
        done = value.end()
    return "".join([*parts, text[done:]])


def _secret(name: str, match: re.Match[str]) -> str:
    """The placeholder, with as many line ends as the secret had: line numbers stay right."""
    secret = taken(match)
    if secret.startswith("[redacted:"):
        return match.group()
    return exchanged(match, f"[redacted:{name}]" + f"\n[redacted:{name}]" * secret.count("\n"))


def taken(match: re.Match[str]) -> str:
    """The telling part of a match."""
    return match.group("x") if "x" in match.re.groupindex else match.group()


def exchanged(match: re.Match[str], placeholder: str) -> str:
    """The match with its telling part replaced, and only there."""
    group = "x" if "x" in match.re.groupindex else 0
    text, start = match.group(), match.start()
    return text[: match.start(group) - start] + placeholder + text[match.end(group) - start :]
