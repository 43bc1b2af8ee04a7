"""How the result came about (``--explain``): every decision in order, with the rule and the lines.

For whoever doubts a result or writes a rule. What the log says is shown as it is, made harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.incident.incident import Decision, Incident, Place
from analyzer.report.plain import plain
from analyzer.schema import Border, Result

_TEXT_SHOWN = 100


def render_explanation(incident: Incident, result: Result) -> str:
    """The decisions about the faults, the borders of the window, the weights, the conclusion.

    Args:
        incident: What the rules decided.
        result: What was made of it.
    """
    parts = [_decisions(incident), _faults(incident), _window(result), _suspects(result), _conclusion(result)]
    return "\n".join(plain(line) for part in parts for line in (*part, ""))


def place_words(place: Place) -> str:
    """``1:12``: the number of the input and the line."""
    return f"{place[0] + 1}:{place[1]}"


def _decisions(incident: Incident) -> Iterator[str]:
    yield "Decisions, in order (input:line  rule  what)"
    if not incident.decisions:
        yield "  none: the inputs tell of no fault"
    last = None
    for one in incident.decisions:
        if one.rule != last:
            yield f"  {one.rule}"
        last = one.rule
        yield f"    {place_words((one.source, one.line))}  #{one.fault + 1}  {_change(one)}"


def _change(one: Decision) -> str:
    change = f"{one.before} -> {one.after}" if one.before else one.after
    if one.what == "fault":
        change = f"{one.after} added" if one.after else f"{one.before} dropped"
    cited = ", ".join(place_words(place) for place in one.lines)
    return f"{one.what}: {change}; {one.why}{f' [{cited}]' if cited else ''}"


def _faults(incident: Incident) -> Iterator[str]:
    yield "Faults, as they were left (input:line  role by rule, trust by rule)"
    judged = zip(incident.numbers, incident.records, incident.roles, incident.trusts, strict=True)
    for number, record, role, trust in judged:
        place = place_words((record.source, record.line))
        decided = f"{role.role} by {role.rule}, {trust.trust} by {trust.rule}"
        text = record.text.partition("\n")[0][:_TEXT_SHOWN]
        yield f"  {place}  #{number + 1}  {decided}: {text}"


def _window(result: Result) -> Iterator[str]:
    yield "Window"
    window = result.window
    if window is None:
        yield "  none"
        return
    yield f"  begin: {_border(window.begin)}{'' if window.proven_begin else ' (not proven)'}"
    yield f"  end: {_border(window.end)}"
    yield f"  inside: {window.size_outer} ops ({window.size} records); cleared: {result.cleared.count}"
    yield from (f"  cleared: {reason}" for reason in result.cleared.reasons)


def _border(border: Border) -> str:
    line = f"line {border.line}" if border.line is not None else "no line"
    return f"{line}, {border.reason}{f' [{border.proof}]' if border.proof else ''}"


def _suspects(result: Result) -> Iterator[str]:
    yield "Suspects (weights are natural log-odds)"
    if not result.suspects:
        yield "  none"
    for one in result.suspects:
        weight = f"weight {one.weight:+.2f}, share {one.share:.0%}"
        yield f"  {one.rank}. {one.op.name}: {weight}{_line(one.op.line)}"
        for reason in one.reasons:
            yield f"       {reason.weight:+.2f}  {reason.evidence}: {reason.text}{_cited(reason.lines)}"


def _line(line: int | None) -> str:
    return "" if line is None else f" (line {line})"


def _cited(lines: Sequence[int]) -> str:
    return f" [{', '.join(map(str, lines))}]" if lines else ""


def _conclusion(result: Result) -> Iterator[str]:
    conclusion = result.conclusion
    root = next((fault for fault in result.faults if fault.role == "root"), None)
    yield f"Conclusion: {conclusion.confidence}, cause {conclusion.cause_class or 'not told'}"
    if root is None:
        yield "  no fault is the root"
    else:
        place = place_words((root.input, root.line))
        yield f"  the root is at {place}, its place is {root.trust}: {root.trust_reason}"
    yield f"  {conclusion.statement}"
    yield from (f"  note: {note}" for note in conclusion.notes)
