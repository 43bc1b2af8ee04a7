"""Taking secrets (always) and names (with ``--redact``) out of a result and its raw lines.

The same name gets the same placeholder everywhere (``host-1``, ``user-1``), numbered by first
appearance, so that a report stays readable and equal input gives equal bytes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from analyzer.report.redact_patterns import COMMON, KNOWN, NAMES, PUBLIC_HOSTS, SECRETS
from analyzer.report.request import ReportContext
from analyzer.report.sections import excerpts_wanted
from analyzer.schema import Result

LONGEST_LINE = 20_000  # longer lines are cut before anything looks at them
BARE_CHARS = 4  # a shorter name is replaced only where its place shows that it is one
# Vocabularies of ours: a user called "unknown" must not break them.
NEVER_TEXT = frozenset(
    [
        "schema_version",
        "tool_version",
        "kind",
        "role",
        "trust",
        "cause_class",
        "confidence",
        "timing_basis",
        "witness",
        "witnesses",
        "envelopes",
        "compression",
        "evidence",
        "proof",
        "verdict",
        "dtype",
    ]
)


class Redactor:
    """Learns names from texts, then replaces them in texts.

    Args:
        names: Whether to replace names too; secrets always go.
    """

    def __init__(self, *, names: bool) -> None:
        self._names = names
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._bare: re.Pattern[str] | None = None
        self._cleaned: dict[str, str] = {}  # the same op names and paths come again and again

    def learn(self, text: str) -> None:
        """Collect the names of one text."""
        if not self._names:
            return
        self._cleaned.clear()
        rest = _without_secrets(text[:LONGEST_LINE])
        for kind, pattern in NAMES:
            for match in pattern.finditer(rest):
                self._placeholder(kind, _taken(match))
        self._bare = None

    def clean(self, text: str) -> str:
        """The text without secrets and, if wanted, without names."""
        found = self._cleaned.get(text)
        if found is None:
            found = self._cleaned[text] = self._clean(text)
        return found

    def _clean(self, text: str) -> str:
        rest = _without_secrets(text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…")
        if not self._names:
            return rest
        for kind, pattern in NAMES:
            rest = pattern.sub(partial(self._replaced, kind), rest)
        return self._bare_names().sub(self._replaced_bare, rest)

    def clean_lines(self, lines: Sequence[str]) -> list[str]:
        """Lines together, so that a key over several of them is seen; as many come out."""
        return self.clean_block([line[:LONGEST_LINE] for line in lines])

    def clean_block(self, lines: Sequence[str]) -> list[str]:
        """Secrets over the whole block, names line by line."""
        whole = _without_secrets("\n".join(line.replace("\n", " ") for line in lines))
        return [self.clean(line) for line in whole.split("\n")]

    def _replaced(self, kind: str, match: re.Match[str]) -> str:
        placeholder = self._placeholder(kind, _taken(match))
        return match.group() if placeholder is None else _exchanged(match, placeholder)

    def _placeholder(self, kind: str, value: str) -> str | None:
        """Null for what is no name after all."""
        if _is_plain(kind, value):
            return None
        key = ("user" if kind == "user" else kind, value)
        if key not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[key] = f"{kind}-{self._counts[kind]}"
        return self._known[key]

    def _bare_names(self) -> re.Pattern[str]:
        if self._bare is None:
            bare = [
                value
                for kind, value in self._known
                if kind in {"user", "host"} and len(value) >= BARE_CHARS and value.lower() not in COMMON
            ]
            longest_first = sorted(bare, key=lambda value: (-len(value), value))
            words = "|".join(re.escape(value) for value in longest_first) or r"(?!)"
            self._bare = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
        return self._bare

    def _replaced_bare(self, match: re.Match[str]) -> str:
        value = match.group()
        return self._known.get(("host", value)) or self._known.get(("user", value)) or value


def _taken(match: re.Match[str]) -> str:
    return match.group("x") if "x" in match.re.groupindex else match.group()


def _exchanged(match: re.Match[str], placeholder: str) -> str:
    """The match with its telling part replaced, and only there."""
    group = "x" if "x" in match.re.groupindex else 0
    text, start = match.group(), match.start()
    return text[: match.start(group) - start] + placeholder + text[match.end(group) - start :]


def _is_plain(kind: str, value: str) -> bool:
    """Values that give nothing away, and placeholders of ours."""
    low = value.lower().strip(".")
    if low in KNOWN or re.fullmatch(r"(?:host|user|ip|email|mac|request-text|gpu-uuid)-\d+", low):
        return True
    if kind == "ip":
        return not _is_address(value)
    return kind == "host" and any(low == host or low.endswith(f".{host}") for host in PUBLIC_HOSTS)


def _is_address(value: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _without_secrets(text: str) -> str:
    for name, pattern in SECRETS:
        text = pattern.sub(partial(_secret, name), text)
    return text


def _secret(name: str, match: re.Match[str]) -> str:
    """The placeholder, with as many line ends as the secret had: line numbers stay right."""
    taken = _taken(match)
    if taken.startswith("[redacted:"):
        return match.group()
    return _exchanged(match, f"[redacted:{name}]" + f"\n[redacted:{name}]" * taken.count("\n"))


def redacted(result: Result, context: ReportContext) -> tuple[Result, ReportContext]:
    """Result and raw lines without secrets, and without names where the context asks for it."""
    redactor = Redactor(names=context.redact)
    if context.redact:
        _each(result, redactor.learn)
        for source, first, last in excerpts_wanted(result):
            for line in context.excerpt(source, first, last):
                redactor.learn(line)

    def excerpt(source: int, first: int, last: int) -> Sequence[str]:
        return redactor.clean_lines(context.excerpt(source, first, last))

    clean = msgspec.convert(_mapped(msgspec.to_builtins(result), redactor.clean), Result)
    return clean, msgspec.structs.replace(context, excerpt=excerpt)


def _each(result: Result, see: Callable[[str], None]) -> None:
    def seen(text: str) -> str:
        see(text)
        return text

    _mapped(msgspec.to_builtins(result), seen)


def _mapped(value: object, change: Callable[[str], str]) -> object:
    """Every text of a tree of plain values changed, but for vocabularies of ours."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    if isinstance(value, dict):
        return {key: one if key in NEVER_TEXT else _mapped(one, change) for key, one in value.items()}
    return value
