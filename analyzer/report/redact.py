"""Taking secrets (always) and names (with ``--redact``) out of a result and its raw lines.

The same name gets the same placeholder everywhere (``host-1``, ``user-1``), numbered by first
appearance, so that a report stays readable and equal input gives equal bytes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec

from analyzer.report.redact_keys import is_key_option
from analyzer.report.redact_paths import is_telling, without_folders
from analyzer.report.redact_patterns import COMMON, KNOWN, NAMES, PUBLIC_HOSTS
from analyzer.report.redact_secrets import exchanged, taken, without_secrets
from analyzer.report.request import ReportContext
from analyzer.report.sections import excerpts_wanted
from analyzer.schema import Result

LONGEST_LINE = 20_000  # longer lines are cut before anything looks at them
BARE_KINDS = ("host", "pod", "user", "folder", "model")
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
        "rung",
        "outcome",
        "fidelity",
        "log_kind",
        "replay_kind",
    ]
)


_PLACEHOLDER = re.compile(r"(?:host|user|ip|email|mac|pod|folder|model|request-text|gpu-uuid)-\d+")

_POD_PROCESS = re.compile(r"[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*")


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
        self._seen: dict[str, str] = {}  # learned texts with their names replaced where they show
        self._cleaned: dict[str, str] = {}  # the same op names and paths come again and again

    def learn(self, text: str) -> None:
        """Collect the names of one text."""
        if not self._names:
            return
        self._cleaned.clear()
        self._bare = None
        self._seen[text] = self._named(without_secrets(_cut(text)))

    def clean(self, text: str) -> str:
        """The text without secrets and, if wanted, without names."""
        found = self._cleaned.get(text)
        if found is None:
            found = self._cleaned[text] = self._clean(text)
        return found

    def _clean(self, text: str) -> str:
        if not self._names:
            return without_secrets(_cut(text))
        named = self._seen.get(text)
        named = self._named(without_secrets(_cut(text))) if named is None else named
        return self._bare_names().sub(self._replaced_bare, named)

    def _named(self, text: str) -> str:
        """Names replaced where their place shows that they are names."""
        for kind, pattern in NAMES:
            text = pattern.sub(partial(self._replaced, kind), text)
        return without_folders(text, self._folder)

    def _folder(self, name: str) -> str:
        return self._placeholder("folder", name) or name

    def clean_lines(self, lines: Sequence[str]) -> list[str]:
        """Lines together, so that a key over several of them is seen; as many come out."""
        return self.clean_block([line[:LONGEST_LINE] for line in lines])

    def clean_block(self, lines: Sequence[str]) -> list[str]:
        """Secrets over the whole block, names line by line."""
        whole = without_secrets("\n".join(line.replace("\n", " ") for line in lines))
        return [self.clean(line) for line in whole.split("\n")]

    def _replaced(self, kind: str, match: re.Match[str]) -> str:
        placeholder = self._placeholder(kind, taken(match))
        return match.group() if placeholder is None else exchanged(match, placeholder)

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
            bare = [value for kind, value in self._known if _stands_alone(kind, value)]
            longest_first = sorted(bare, key=lambda value: (-len(value), value))
            words = "|".join(re.escape(value) for value in longest_first) or r"(?!)"
            self._bare = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
        return self._bare

    def _replaced_bare(self, match: re.Match[str]) -> str:
        value = match.group()
        return next((self._known[kind, value] for kind in BARE_KINDS if (kind, value) in self._known), value)


def _stands_alone(kind: str, value: str) -> bool:
    """Whether a name goes everywhere, or only where its place shows that it is one."""
    if kind in {"folder", "model"}:
        return len(value) >= BARE_CHARS and is_telling(value)
    return kind in BARE_KINDS and len(value) >= BARE_CHARS and value.lower() not in COMMON


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…"


def _is_plain(kind: str, value: str) -> bool:
    """Values that give nothing away, and placeholders of ours."""
    low = value.lower().strip(".")
    if low in KNOWN or _PLACEHOLDER.fullmatch(low):
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


def redactor_of(result: Result, context: ReportContext) -> Redactor:
    """Knows the names of a result and of its raw lines, if the context asks for names."""
    redactor = Redactor(names=context.redact)
    if context.redact:
        tree = msgspec.to_builtins(result)
        lines = [context.excerpt(source, first, last) for source, first, last in excerpts_wanted(result)]
        raw = dict.fromkeys(line for some in lines for line in some)
        for text in (*_pods(result), *dict.fromkeys(_texts(tree)), *raw):
            redactor.learn(text)
    return redactor


def _pods(result: Result) -> Iterator[str]:
    """Processes that are told apart by pod and container, as texts that show it."""
    return (f"pod/{one.key}" for one in result.processes if _POD_PROCESS.fullmatch(one.key))


def redacted(result: Result, context: ReportContext) -> tuple[Result, ReportContext]:
    """Result and raw lines without secrets, and without names where the context asks for it."""
    redactor = redactor_of(result, context)
    tree = msgspec.to_builtins(result)
    texts = dict.fromkeys(_texts(tree))  # each once: op names and frames come again and again

    def excerpt(source: int, first: int, last: int) -> Sequence[str]:
        return redactor.clean_lines(context.excerpt(source, first, last))

    clean = {text: redactor.clean(text) for text in texts}
    changed = any(before != after or _wants_secret(before) for before, after in clean.items())
    told = msgspec.convert(_mapped(tree, clean), Result) if changed else result
    return told, msgspec.structs.replace(context, excerpt=excerpt)


def _texts(value: object) -> Iterator[str]:
    """Every text of a tree of plain values, but for vocabularies of ours, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in NEVER_TEXT:
                yield from _texts(one)


def _wants_secret(word: object) -> bool:
    """Whether the next word of a command line is a key."""
    return isinstance(word, str) and is_key_option(word)


def _mapped(value: object, clean: Mapping[str, str]) -> object:
    """The same tree with every such text exchanged."""
    if isinstance(value, str):
        return clean[value]
    if isinstance(value, list | tuple):
        before = [None, *value]
        return [
            "[redacted:secret]" if _wants_secret(last) and isinstance(one, str) else _mapped(one, clean)
            for last, one in zip(before, value, strict=False)
        ]
    if isinstance(value, dict):
        return {key: one if key in NEVER_TEXT else _mapped(one, clean) for key, one in value.items()}
    return value
