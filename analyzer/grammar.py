"""The only loader of grammars, and the one way to run a text through one.

Nothing is built at import, Lark is not even imported: a run that meets no op log pays nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import stat
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import platformdirs

from analyzer.errors import AnalyzerError
from analyzer.scratch import unfinished_file

if TYPE_CHECKING:
    from lark import Lark, Token, Transformer
    from lark.exceptions import UnexpectedInput
    from lark.tree import ParseTree

T = TypeVar("T")

MAX_DEPTH = 120  # of a parse tree; real ones stay under 20, and the visitors recurse (Python: 1000 frames)
END_NAMES = frozenset({"$END", "<END-OF-FILE>"})  # Lark's parser and Lark's lexer
_SHOWN = 40  # characters of context on each side in an error text


class GrammarError(ValueError):
    """A text that a grammar does not read.

    ``position`` is the 0-based offset in ``text`` where reading stopped (``len(text)`` = the text
    ended too early); ``expected`` names what could have stood there (literals or terminal names).
    """

    def __init__(self, grammar: str, text: str, position: int, expected: tuple[str, ...]) -> None:
        """Keep the parts; the message shows the text around ``position``."""
        before = text[max(0, position - _SHOWN) : position]
        after = text[position : position + _SHOWN]
        wanted = " or ".join(expected) or "nothing more"
        super().__init__(f"{grammar}: expected {wanted} at {position}, between {before!r} and {after!r}")
        self.grammar = grammar
        self.text = text
        self.position = position
        self.expected = expected


@cache
def data_path(kind: Literal["grammars", "sample_logs"]) -> Path:
    """The folder of the grammars or of the sample logs.

    Args:
        kind: Which folder. A wheel ships it as ``analyzer/_data/<kind>``; a checkout or an editable
            install has it beside ``analyzer/``.

    Raises:
        AnalyzerError: Neither is there: the installation is broken.
    """
    package = Path(__file__).resolve().parent
    # The wheel's folder first: site-packages may hold somebody else's "grammars".
    for folder in (package / "_data" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise AnalyzerError(f"the folder {kind!r} is missing beside {package}: install trace-analyze again")


@cache
def load(name: str, start: str = "start") -> Lark:
    """The LALR parser of ``grammars/<name>.lark``, built on first use and kept.

    Args:
        name: File name without ``.lark``.
        start: The rule to begin with; each start has a parser of its own.

    Raises:
        AnalyzerError: There is no such grammar.
    """
    path = data_path("grammars") / f"{name}.lark"
    if not path.is_file():
        raise AnalyzerError(f"grammar {name!r} is missing: {path}")
    tables = _cache_file(name, start)
    if tables is None or tables.exists():
        return _opened(path, start, tables)
    parser = None
    with contextlib.suppress(OSError), unfinished_file(tables) as file:
        parser = _opened(path, start, file)
        with file.open("rb") as made:
            made.seek(-1, os.SEEK_END)
            if made.read() != pickle.STOP:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # Lark does not say it
    return parser or _opened(path, start, None)


def _opened(path: Path, start: str, tables: Path | None) -> Lark:
    from lark import Lark

    cache = str(tables) if tables is not None else False
    return Lark.open(str(path), parser="lalr", start=start, maybe_placeholders=False, cache=cache)


def _cache_file(name: str, start: str) -> Path | None:
    """Where Lark keeps the built tables of a grammar; null = nowhere.

    Building the dozen grammars of one log costs a third of a second, more than reading most logs. The folder
    is the user's own and closed to others: what lies there is unpickled. Lark itself compares a hash of
    grammar, options and versions.
    """
    folder = platformdirs.user_cache_path("trace-analyze")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not (mine and stat.S_IMODE(found.st_mode) & 0o022 == 0 and os.access(folder, os.W_OK)):
        return None
    return folder / f"{name}.{start}.tables"


def parse(name: str, text: str, start: str = "start") -> ParseTree:
    """Parse one text with ``grammars/<name>.lark``.

    Raises:
        GrammarError: The grammar does not read the text, or it nests deeper than ``MAX_DEPTH``.
    """
    from lark.exceptions import LarkError, UnexpectedInput

    parser = load(name, start)
    try:
        tree = parser.parse(text)
    except UnexpectedInput as error:
        raise GrammarError(name, text, _position(error, text), _expected(error, parser)) from error
    except (LarkError, RecursionError) as error:
        raise GrammarError(name, text, 0, (type(error).__name__,)) from error
    _check_depth(name, text, tree)
    return tree


class Reader(Generic[T]):
    """Reads texts of one grammar into values; nothing is built before the first text.

    ``rules`` gives for each rule or alias of the grammar the function that turns the list of its
    children (tokens, and values of inner rules) into its value. ``T`` is the value of ``start``.
    Token text that ends in a value must go through ``token_text``.
    """

    def __init__(
        self, grammar: str, rules: Mapping[str, Callable[[list[Any]], Any]], start: str = "start"
    ) -> None:
        """Remember what to build."""
        self.grammar = grammar
        self._rules = rules
        self._start = start

    def read(self, text: str) -> T:
        """Read one text.

        Raises:
            GrammarError: The grammar does not read it, or a part of it is refused by the function of its rule
                (a number that fits nowhere).
        """
        from lark.exceptions import VisitError

        tree = parse(self.grammar, text, self._start)
        try:
            return self._transformer.transform(tree)
        except VisitError as error:
            if isinstance(error.orig_exc, GrammarError):
                raise error.orig_exc from error
            if isinstance(error.orig_exc, (ArithmeticError, LookupError, RecursionError, ValueError)):
                raise GrammarError(self.grammar, text, 0, (f"another form of {error.rule}",)) from error
            raise

    @cached_property
    def _transformer(self) -> Transformer[Token, T]:
        from lark import Transformer

        methods = {rule: staticmethod(build) for rule, build in self._rules.items()}
        transformer: Transformer[Token, T] = type("RuleTransformer", (Transformer,), methods)()
        return transformer


def parse_distinct(texts: Iterable[str], parse: Callable[[str], T]) -> dict[str, T | None]:
    """Parse each distinct text once.

    Args:
        texts: Any order, with repeats: a million records have a thousand distinct texts.
        parse: A function that raises ``GrammarError`` for what it does not read.

    Returns:
        Text to value, in order of first appearance; ``None`` = the grammar did not read it.
    """
    return {text: _parsed_or_none(text, parse) for text in dict.fromkeys(texts)}


def token_text(token: Token | str) -> str:
    """The text of a token as a plain ``str``, so that no result keeps Lark's objects alive."""
    return str.__str__(token)


def token_type(child: object) -> str | None:
    """The terminal of a token, null for a value: tells them apart without importing Lark."""
    kind = getattr(child, "type", None) if isinstance(child, str) else None
    return kind if isinstance(kind, str) else None


def first_child(children: list[Any]) -> Any:
    """For rules that only hand their one child on."""
    return children[0]


def _parsed_or_none(text: str, parse: Callable[[str], T]) -> T | None:
    try:
        return parse(text)
    except GrammarError:
        return None


def _check_depth(name: str, text: str, tree: ParseTree) -> None:
    from lark import Tree

    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise GrammarError(name, text, 0, (f"nesting of at most {MAX_DEPTH} levels",))
        level = [child for node in level for child in node.children if isinstance(child, Tree)]


def _position(error: UnexpectedInput, text: str) -> int:
    # Lark leaves None or -1 at the end of the text.
    at_end = token_type(getattr(error, "token", None)) == "$END"
    offset: int | None = error.pos_in_stream  # Lark declares it int
    return len(text) if at_end or offset is None or offset < 0 else offset


def _expected(error: UnexpectedInput, parser: Lark) -> tuple[str, ...]:
    names = getattr(error, "allowed", None) or getattr(error, "expected", None) or ()
    return tuple(sorted({_readable(name, parser) for name in names}))


def _readable(terminal: str, parser: Lark) -> str:
    from lark.lexer import PatternStr

    if terminal in END_NAMES:
        return "end of text"
    pattern = parser.get_terminal(terminal).pattern
    if isinstance(pattern, PatternStr):
        return repr(pattern.value)
    return terminal.strip("_")
