"""Functions of FlashInfer by the name that a dump gives them.

FlashInfer dumps the calls of functions that it decorates with ``@flashinfer_api``
(flashinfer/api_logging.py). Only these are called: the package also has functions that run compilers and
write files, and modules through which all of Python can be reached.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

from analyzer.replay.executors.call import CannotRunError

PACKAGE = "flashinfer"
_MARK = re.compile(r"@(?:[\w.]{1,250}\.)?flashinfer_api[ \t]*+(?:\(|$)", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*def\b", re.MULTILINE)
# A text is passed where it can be a word (``NHD``, ``fa2``): nothing with which a path can be written.
_WORD = re.compile(r"[A-Za-z0-9_-]{0,40}")


def is_of_flashinfer(call: str) -> bool:
    """Whether a name is one of FlashInfer's: ``flashinfer.decode.single_decode_with_kv_cache``."""
    parts = call.split(".")
    plain = all(part.isascii() and part.isidentifier() and not part.startswith("_") for part in parts)
    return parts[0] == PACKAGE and len(parts) > 1 and plain


def find_dumped(call: str) -> Callable[..., Any] | None:
    """The function of that name; null = FlashInfer has none.

    Raises:
        CannotRunError: It is none whose calls FlashInfer dumps.
    """
    module, _, name = call.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            return None
        raise
    if found is None:
        return None
    if not inspect.isfunction(found) or not _is_dumped(inspect.unwrap(found)):
        raise CannotRunError(f"{call} is no function whose calls FlashInfer dumps")
    return found


def _is_dumped(function: Callable[..., Any]) -> bool:
    """Whether it is FlashInfer's own, and decorated as what is dumped. Without its source it is not."""
    if function.__module__.partition(".")[0] != PACKAGE:
        return False
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return False
    begins = _DEFINITION.search(source)
    return begins is not None and _MARK.search(source, 0, begins.start()) is not None


def check_values(values: list[Any]) -> None:
    """Refuse a text that is no word: a path.

    Raises:
        CannotRunError: There is one.
    """
    for one in values:
        if isinstance(one, str) and _WORD.fullmatch(one) is None:
            raise CannotRunError(f"{one[:40]!r} is no word that a function of FlashInfer is given")
        if isinstance(one, (list, tuple)):
            check_values(list(one))
