"""SARIF 2.1.0: the suspect at its Python source line, the window as a code flow, the kind as the rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

from analyzer.replay_result import BlamedOp
from analyzer.report.plain import plain, plain_json
from analyzer.report.request import ReportContext
from analyzer.report.signature import Signature, signature
from analyzer.report.story.marks import key_of, suspects_by_op, window_ops
from analyzer.report.story.telling import accused_of, clip, percent, root_of
from analyzer.schema import Fault, OpRef, Replay, Result, SourceFrame, Suspect

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RESULTS_LIMIT = 5_000  # GitHub shows no more; it refuses over 25,000
FLOW_LIMIT = 1_000  # the same for the locations of a code flow (10,000)
LOG_BASE = "LOGS"
SOURCE_BASE = "SRCROOT"
MESSAGE_CHARS = 1_000  # GitHub cuts after 1,024
Json = dict[str, object]
RULES = {
    "proven": "the place is proven by a witness on the device or by an exact report",
    "confirmed": "confirmed by replay",
    "likely": "over half of the suspicion",
    "ranked": "first of a ranking",
}


def render(result: Result, context: ReportContext, limit_bytes: int | None = None) -> bytes:
    """The root faults as SARIF results. With a limit the code flow is shortened, and that is counted."""
    flow = FLOW_LIMIT
    while True:
        document = json.dumps(_log(result, context, flow), indent=2, ensure_ascii=False)
        data = f"{plain_json(document)}\n".encode("utf-8", errors="backslashreplace")
        if limit_bytes is None or len(data) <= limit_bytes or flow == 0:
            return data
        flow //= 4


def _log(result: Result, context: ReportContext, flow: int) -> Json:
    roots = [fault for fault in result.faults if fault.role == "root"]
    kinds = sorted({fault.kind for fault in roots})
    run: Json = {
        "tool": {
            "driver": {
                "name": "trace-analyze",
                "semanticVersion": plain(result.tool_version),
                "rules": [_rule(kind) for kind in kinds],
            }
        },
        "originalUriBaseIds": {
            SOURCE_BASE: {"description": {"text": "Root of the sources that the log names."}},
            LOG_BASE: {"description": {"text": "Folder of the analysed logs."}},
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(result, context, fault, flow if fault is roots[0] else 0)
            for fault in roots[:RESULTS_LIMIT]
        ],
        "properties": {"resultsOmitted": max(len(roots) - RESULTS_LIMIT, 0)},
    }
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _rule(kind: str) -> Json:
    name = "".join(word.capitalize() for word in kind.split("_"))
    text = f"GPU fault: {kind.replace('_', ' ')}"
    return {
        "id": kind,
        "name": name,
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": "error"},
    }


def _result(result: Result, context: ReportContext, fault: Fault, flow: int) -> Json:
    first = fault is root_of(result)
    suspect = accused_of(result) if first else None
    made = signature(result) if first else None
    message = result.conclusion.statement if first else fault.text
    told: Json = {
        "ruleId": fault.kind,
        "level": "error",
        "message": {"text": plain(clip(message, MESSAGE_CHARS))},
        "locations": [_suspect_location(result, context, suspect, fault)],
        "relatedLocations": list(_related(result, context, fault, suspect)),
        "properties": _properties(result, fault, suspect, made),
    }
    if made is not None:
        told["partialFingerprints"] = {f"traceAnalyzeSignature/{made.id.partition('-')[0]}": made.id}
    steps = list(_flow(result, context, flow)) if flow else []
    if steps:
        told["codeFlows"] = [_code_flow(result, context, steps)]
    return told


def _properties(result: Result, fault: Fault, suspect: Suspect | None, made: Signature | None) -> Json:
    conclusion = result.conclusion
    found: Json = {
        "confidence": conclusion.confidence,
        "confidenceMeans": RULES.get(conclusion.confidence, "no op can be named"),
        "causeClass": conclusion.cause_class,
        "trust": fault.trust,
        "code": fault.code,
        "signatureBasis": made.basis if made else None,
        "share": suspect.share if suspect else None,
        **(_replay_facts(result.replay) if fault is root_of(result) and result.replay else {}),
    }
    return {key: value for key, value in found.items() if value is not None}


def _replay_facts(done: Replay) -> Json:
    return {
        "replayVerdict": done.verdict,
        "replayAttempts": len(done.attempts),
        "replayFailed": sum(one.outcome == "failed" for one in done.attempts),
        "replaySeconds": round(sum(one.duration_s for one in done.attempts), 3),
        "replayInputs": done.fidelity,
        "replayRulesOut": [plain(clip(text, MESSAGE_CHARS)) for text in done.rules_out] or None,
    }


def _suspect_location(result: Result, context: ReportContext, suspect: Suspect | None, fault: Fault) -> Json:
    """The suspect's source line; else where a replay failed, or what an exact report names; else the log."""
    if suspect is not None and suspect.source:
        frame = suspect.source[0]
        name = {"logicalLocations": [{"fullyQualifiedName": plain(suspect.op.name), "kind": "function"}]}
        return {**_source(context, frame), **name}
    confirmed = _confirmed(result) if fault is root_of(result) else None
    if confirmed is not None and confirmed.source is not None:
        name = {"logicalLocations": [{"fullyQualifiedName": plain(confirmed.name), "kind": "function"}]}
        return {**_source(context, confirmed.source), **name}
    if suspect is None and fault.trust == "exact" and fault.reported_at.python is not None:
        return _source(context, fault.reported_at.python)
    return _log_place(result, fault.input, fault.line)


def _confirmed(result: Result) -> BlamedOp | None:
    """The op that a replay confirmed."""
    done = result.replay
    return done.op if done is not None and done.verdict == "confirmed" else None


def _replayed_places(result: Result, context: ReportContext) -> Iterator[tuple[Json, str]]:
    done = result.replay
    for op, words in ((done.op, "a replay failed here"), (done.producer, "wrote the index")) if done else ():
        if op is not None and op.source is not None:
            yield _source(context, op.source), f"{words}: {plain(clip(op.name, 300))}"


def _related(result: Result, context: ReportContext, fault: Fault, suspect: Suspect | None) -> Iterator[Json]:
    places: list[tuple[Json, str]] = [
        (_log_place(result, fault.input, fault.line), "reported here in the log")
    ]
    if fault.reported_at.python is not None:
        words = "reported by this line" + ("" if fault.trust == "exact" else ": late, not where it happened")
        places.append((_source(context, fault.reported_at.python), words))
    if suspect is not None and suspect.op.line is not None:
        places.append((_log_place(result, suspect.op.input, suspect.op.line), "launch record of the suspect"))
    more = suspect.source[1:] if suspect else []
    places += [(_source(context, frame), "another source line of the same fused op") for frame in more]
    places += _replayed_places(result, context) if fault is root_of(result) else []
    for number, (place, words) in enumerate(places, 1):
        yield {"id": number, **place, "message": {"text": words}}


def _flow(result: Result, context: ReportContext, limit: int) -> Iterator[Json]:
    suspects = suspects_by_op(result)
    for order, one in enumerate(window_ops(result, context)[:limit]):
        suspect = suspects.get(key_of(one.op))
        yield {
            "location": {
                **_op_place(result, context, one.op, suspect),
                "message": {"text": _step_text(one.op, suspect)},
            },
            "executionOrder": order + 1,
            "nestingLevel": one.depth,
            "importance": "essential"
            if suspect and suspect.rank == 1
            else "important"
            if suspect
            else "unimportant",
        }


def _code_flow(result: Result, context: ReportContext, steps: list[Json]) -> Json:
    total = len(window_ops(result, context))
    text = "Launches of the window in order" + (
        f", the first {len(steps)} of {total}" if total > len(steps) else ""
    )
    return {"message": {"text": text}, "threadFlows": [{"locations": steps}]}


def _step_text(op: OpRef, suspect: Suspect | None) -> str:
    share = f": suspect {suspect.rank}, {percent(suspect.share)}" if suspect else ""
    return f"{plain(clip(op.name, 300))}{share}"


def _op_place(result: Result, context: ReportContext, op: OpRef, suspect: Suspect | None) -> Json:
    if suspect is not None and suspect.source:
        return _source(context, suspect.source[0])
    return _log_place(result, op.input, op.line or 1)


def _source(context: ReportContext, frame: SourceFrame) -> Json:
    uri = relative_uri(frame.file, context.source_root)
    region: Json = {"startLine": max(frame.line, 1)}
    if frame.text:
        region["snippet"] = {"text": plain(clip(frame.text, MESSAGE_CHARS))}
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri, "uriBaseId": SOURCE_BASE}, "region": region}
    }


def _log_place(result: Result, source: int, line: int) -> Json:
    path = result.inputs[source].path if source < len(result.inputs) else "input"
    uri = relative_uri(path.rsplit("/", 1)[-1] or "input", None)
    place: Json = {
        "artifactLocation": {"uri": uri, "uriBaseId": LOG_BASE},
        "region": {"startLine": max(line, 1)},
    }
    return {"physicalLocation": place}


def relative_uri(path: str, root: str | None) -> str:
    """A path of the log as a relative URI: no scheme, no host, no way up, everything odd escaped."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
    base = [part for part in (root or "").replace("\\", "/").split("/") if part]
    if base and parts[: len(base)] == base:  # MAX prints paths without their leading slash
        parts = parts[len(base) :]
    text = "/".join(parts) or "unknown"
    return quote(text.encode("utf-8", errors="backslashreplace"), safe="/")
