"""Environment switches that a log shows as set: echoes of commands, dumps of the environment.

A sentence that only mentions a switch ("set MODULAR_DEBUG=device-sync-mode", "consider passing
CUDA_LAUNCH_BLOCKING=1") is no setting: what stands before the assignment decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.grammar import GrammarError, parse, token_text
from analyzer.schema import Value

GRAMMAR = "max_modes"
# Switch -> field of ``schema.Modes``; MODULAR_DEBUG holds a list of options.
_DEBUG = "MODULAR_DEBUG"
_SWITCHES = {
    "MODULAR_DEVICE_CONTEXT_SYNC_MODE": "device_sync_mode",
    "CUDA_LAUNCH_BLOCKING": "launch_blocking",
    "HIP_LAUNCH_BLOCKING": "launch_blocking",
    "AMD_SERIALIZE_KERNEL": "launch_blocking",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "coredump",
}
_OPTIONS = {"device-sync-mode": "device_sync_mode", "source-tracebacks": "source_tracebacks"}
_STATES = {"1": True, "true": True, "on": True, "yes": True, "3": True} | {  # 3: AMD_SERIALIZE_KERNEL
    "0": False, "false": False, "off": False, "no": False, "": False,
}  # fmt: skip


class Setting(Value):
    """A field of ``schema.Modes`` and its state."""

    name: str
    value: bool | str


def parse_settings(line: str) -> tuple[Setting, ...]:
    """Switches that a line shows as set; empty = it shows none.

    Raises:
        GrammarError: The line sets a switch to something that cannot be read.
    """
    found: list[Setting] = []
    for switch in (_DEBUG, *_SWITCHES):
        value = _value(line, switch)
        if value is not None:
            found.extend(_options(value) if switch == _DEBUG else [_state(_SWITCHES[switch], value)])
    return tuple(found)


def _value(line: str, switch: str) -> str | None:
    """The text that the switch is set to; null = it is not set here."""
    at = line.find(switch)
    while at >= 0:
        end = at + len(switch)
        quoted = at > 0 and line[at - 1] in "\"'" and line[end : end + 1] == line[at - 1]
        if quoted and line[end + 1 :].lstrip().startswith(":"):  # an entry of a dictionary
            return _unquoted(_tokens("entry", line[at - 1 :])[1])
        if line[end : end + 1] == "=" and _is_lead(line[:at]):
            tokens = _tokens(
                "assignment", line[at:].rstrip("\"'") if line[at - 1 : at] in {'"', "'"} else line[at:]
            )
            return _unquoted(tokens[1]) if len(tokens) > 1 else ""
        at = line.find(switch, end)
    return None


def _is_lead(text: str) -> bool:
    """Only shell words, other assignments or a label such as ``Environment:`` stand before."""
    try:
        parse(GRAMMAR, text, "lead")
    except GrammarError:
        return False
    return True


def _options(value: str) -> Iterator[Setting]:
    if not value:
        return
    for option in parse(GRAMMAR, value, "options").children:
        assert not isinstance(option, str)
        name, *given = (token_text(token) for token in option.children if isinstance(token, str))
        if name in _OPTIONS:
            yield _state(_OPTIONS[name], given[0] if given else "true")
        elif name == "op-log-level" and given and given[0].isupper():  # lower case is refused (observed.md 1)
            yield Setting(name="op_log_level", value=given[0])


def _state(name: str, value: str) -> Setting:
    state = _STATES.get(value.lower())
    if state is None:
        raise GrammarError(GRAMMAR, value, 0, tuple(sorted(_STATES)))
    return Setting(name=name, value=state)


def _tokens(rule: str, text: str) -> list[str]:
    return [token_text(token) for token in parse(GRAMMAR, text, rule).children if isinstance(token, str)]


def _unquoted(text: str) -> str:
    return text.strip("\"'").rstrip(",")
