"""The first screen: the verdict, what the log proves about the impact, what is left for the author."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.report.signature import signature
from analyzer.report.story.telling import (
    Scene,
    accused_of,
    advice,
    cite_fault,
    cite_lines,
    cite_op,
    cite_whole,
    code,
    counted,
    fact,
    gap,
    inference,
    mixed,
    named,
    root_of,
    strong,
    with_lines,
)
from analyzer.report.story.values import Cite, Items, Paragraph, Part, Section, Sentence, Todo, Todos
from analyzer.schema import Fault, ProcessInfo

BASIS = {
    "suspect": "made of fault kind, accused op and its source line",
    "kernel": "made of fault kind and the kernel that an exact report names",
    "report": "coarse: made of fault kind and report site only, so different bugs can share it",
}
LEFT_FOR_AUTHOR = (
    ("Owner", "who owns this incident and the fix"),
    ("Customer impact", "which users, requests and models, for how long: a server's log cannot tell"),
    ("Detection and recovery", "which alert fired, when service was back"),
    ("Fix and follow-ups", "change, ticket, and the test that would have caught it"),
)
REQUESTS_SHOWN = 8
CLEAN = "no fault"


def confidence_word(scene: Scene) -> str:
    """The confidence, in a word for people."""
    conclusion = scene.result.conclusion
    return CLEAN if conclusion.confidence == "none" and not scene.result.faults else conclusion.confidence


def verdict_cites(scene: Scene) -> tuple[Cite, ...]:
    """What the verdict rests on: the root fault and the accused op, or all that was read."""
    root, accused = root_of(scene.result), accused_of(scene.result)
    cites = (cite_fault(root),) if root is not None else ()
    return cites + (cite_op(accused.op) if accused else ()) or cite_whole(scene.result)


def verdict(scene: Scene) -> Section:
    """What failed, in one sentence, and how sure that is."""
    conclusion = scene.result.conclusion
    cites = verdict_cites(scene)
    word = confidence_word(scene)
    first = inference(strong(f"{word.upper()}: "), *mixed(scene, conclusion.statement), cites=cites)
    more: list[Sentence] = []
    if conclusion.messenger is not None:
        told = " is the messenger: it met what an earlier op made."
        at = cite_op(conclusion.messenger) or cites
        more.append(inference(*named(scene, conclusion.messenger), told, cites=at))
    more += [_note(scene, note, cites) for note in conclusion.notes]
    more += _first_step(scene)
    notes = (Items(sentences=tuple(more)),) if more else ()
    blocks = (Paragraph(sentences=(first,)), *notes, *_signature(scene, cites))
    return Section(id="verdict", title="Verdict", blocks=blocks)


def _note(scene: Scene, note: str, cites: tuple[Cite, ...]) -> Sentence:
    root = root_of(scene.result)
    text, own = with_lines(scene, root.input if root is not None else 0, note, cites)
    return inference(*mixed(scene, _ended(text[:1].upper() + text[1:])), cites=own)


def _first_step(scene: Scene) -> Iterator[Sentence]:
    """The cheapest next command on the first screen; the others have their section."""
    for step in scene.result.next_steps[:1]:
        yield advice(strong("Run next: "), code(step.command), "; ", *mixed(scene, _ended(step.why)))


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def _signature(scene: Scene, cites: tuple[Cite, ...]) -> Iterator[Paragraph]:
    made = signature(scene.result)
    if made is None:
        return
    parts = [made.kind, made.what, made.where]
    told = code(" | ".join(part for part in parts if part), scene.detail.name_chars)
    text = ("Signature ", code(made.id), ", ", BASIS[made.basis], ": ", told, ".")
    yield Paragraph(sentences=(inference(*text, cites=cites),))


def impact(scene: Scene) -> Section:
    """Facts about the reach of the failure, and nothing that the log does not show."""
    result = scene.result
    sentences = [*_servers(scene), *_ranks(scene)]
    root = root_of(result)
    if root is not None:
        sentences += [*_reach(root), _last_sound(scene, root)]
    elif result.timeline.ops:
        seen = counted(result.timeline.ops, "op launch")
        sentences.append(fact(f"{seen} recorded, and no error text.", cites=cite_whole(result)))
    sentences.append(_requests(scene))
    blocks = (Items(sentences=tuple(sentences)),)
    return Section(id="impact", title="Impact that the log proves", blocks=blocks)


def _servers(scene: Scene) -> Iterator[Sentence]:
    for at, one in enumerate(scene.result.inputs[: scene.detail.rows]):
        known = ", ".join(one.witnesses) or "no witness that is known"
        text = f": {counted(one.lines, 'line')}; programs recognised in it: {known}."
        yield fact(code(scene.inputs[at]), text, cites=[Cite(input=at)])


def _ranks(scene: Scene) -> Iterator[Sentence]:
    known = [one for one in scene.result.processes if one.key]
    if not known:
        return
    inputs = dict.fromkeys(one.input for one in known)
    shown = ", ".join(_process_name(one) for one in known[:8])
    more = f" and {len(known) - 8:,} more" if len(known) > 8 else ""
    told = f"{counted(len(known), 'process')} with op records: {shown}{more}."
    yield fact(told, cites=[Cite(input=at) for at in inputs])


def _process_name(one: ProcessInfo) -> str:
    return one.key if one.rank is None else f"{one.key} (rank {one.rank})"


def _reach(root: Fault) -> Iterator[Sentence]:
    where = [f"on {root.device}"] if root.device else []
    where += [f"in process {root.process}"] if root.process else []
    where += [f"rank {root.rank}"] if root.rank is not None else []
    if where:
        yield fact(f"The fault was reported {', '.join(where)}.", cites=[cite_fault(root)])
    if root.sticky:
        text = "The error is sticky: the context is lost, and every later call of this process on it fails."
        yield inference(text, cites=[cite_fault(root)])


def _requests(scene: Scene) -> Sentence:
    """What was being executed, by the ids of the log; whether a user noticed is for the author."""
    known = scene.result.impact
    if not known:
        return gap("Requests in flight: not told by these inputs.")
    total = len(known) + scene.result.impact_omitted
    parts: list[str | Part] = [strong(f"{counted(total, 'request')} in flight: ")]
    for number, one in enumerate(known[:REQUESTS_SHOWN]):
        tokens = "" if one.tokens is None else f" ({counted(one.tokens, 'token')})"
        parts += [", " if number else "", code(one.request_id, 80), tokens]
    more = total - min(len(known), REQUESTS_SHOWN)
    parts.append(f" and {more:,} more." if more else ".")
    cites = [Cite(input=one.input, line=one.line) for one in known[:REQUESTS_SHOWN]]
    return fact(*parts, cites=tuple(dict.fromkeys(cites)))


def _last_sound(scene: Scene, root: Fault) -> Sentence:
    window = scene.result.window
    if window is None:
        return inference("Last sound step: these inputs do not show one.", cites=[cite_fault(root)])
    at = cite_lines(window.first_op.input, [window.begin.line] if window.begin.line is not None else [])
    cites = at or cite_op(window.first_op) or (cite_fault(root),)
    steps = [step for step in window.steps if step > 0]
    if window.proven_begin and steps:
        told = f"Step {min(steps) - 1} is the last step shown to be sound: "
        return inference(strong(told), *mixed(scene, _ended(window.begin.reason)), cites=cites)
    told = "Work before the window" if window.proven_begin else "No step"
    return inference(
        strong(f"{told} is shown to be sound: "), *mixed(scene, _ended(window.begin.reason)), cites=cites
    )


def author(scene: Scene) -> Section:
    """What only people know."""
    del scene
    todos = tuple(Todo(label=label, hint=hint) for label, hint in LEFT_FOR_AUTHOR)
    return Section(id="author", title="Left for the author", blocks=(Todos(todos=todos),))
