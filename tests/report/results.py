"""Hand-made results, one a kind of outcome, small enough to know by heart."""

from __future__ import annotations

from analyzer import schema as s

HOSTILE = "evil\x1b[31m [bold]name[/bold] \u202etxt\r\n\x00"


def op(name: str, op_id: int | None, line: int | None, **facts: int | str | None) -> s.OpRef:
    step = facts.get("step")
    return s.OpRef(
        name=name,
        id=op_id,
        process=str(facts.get("process", "")),
        input=0,
        line=line,
        device="gpu:0",
        step=step if isinstance(step, int) else None,
    )


PAGED = op("custom__paged_lookup", 302, 6548, step=9)
SOFTMAX = op("Prologue(add, reduce.softmax, operandIndices=[0])", 319, 6896, step=9)
REPORT = (
    "RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
)
COMMAND = "MODULAR_DEBUG=op-log-level=TRACE,source-tracebacks,device-sync-mode python max_steps.py paged 9 12"


def result(**changes: object) -> s.Result:
    """A clean analysis, with ``changes`` to its fields."""
    fields: dict[str, object] = {
        "schema_version": s.SCHEMA_VERSION,
        "tool_version": "0.1.0",
        "inputs": [s.InputInfo(path="logs/serve.log", size_bytes=261200, lines=6927, witnesses=["max_ops"])],
        "accounting": s.Accounting(
            total_lines=6927, parsed=640, continuation=4100, ignored=2187, unrecognised=0
        ),
        "modes": s.Modes(source_tracebacks=True, op_log_level="TRACE"),
        "processes": [s.ProcessInfo(key="", input=0, ops=320, runs=1)],
        "faults": [],
        "window": None,
        "cleared": s.Cleared(count=0, ops=[], reasons=[]),
        "suspects": [],
        "conclusion": s.Conclusion(
            confidence="none", cause_class=None, suspect=None, statement="No fault was found in these inputs."
        ),
        "timeline": s.TimelineInfo(
            ops=320,
            completed=320,
            unmatched_completions=0,
            steps=10,
            devices=["gpu:0"],
            timing_basis="none",
            names=40,
        ),
        "next_steps": [],
        "replay": None,
        "losses": [],
    }
    return s.Result(**(fields | changes))  # type: ignore[arg-type]  # one dict, many field types


def fault(**changes: object) -> s.Fault:
    """The late report of the paged decoder, with ``changes`` to its fields."""
    fields: dict[str, object] = {
        "line": 6926,
        "last_line": 6927,
        "input": 0,
        "process": "",
        "text": REPORT,
        "witness": "max_errors",
        "kind": "illegal_address",
        "role": "root",
        "trust": "late",
        "code": 700,
        "name": "CUDA_ERROR_ILLEGAL_ADDRESS",
        "vendor": "CUDA",
        "sticky": True,
        "device": "gpu:0",
        "reported_at": s.ReportedAt(
            python=s.SourceFrame(file="/srv/app/max_steps.py", line=50, function="main", text="out.to(CPU())")
        ),
        "trust_reason": "met by a copy to the host, which waits for everything before it",
    }
    return s.Fault(**(fields | changes))  # type: ignore[arg-type]  # one dict, many field types


def paged_suspect() -> s.Suspect:
    source = s.SourceFrame(
        file="srv/app/max_steps.py", line=30, function="build", text='x = ops.custom(name="paged_lookup")'
    )
    return s.Suspect(
        rank=1,
        op=PAGED,
        weight=3.2,
        share=0.71,
        source=[source],
        stacks=1,
        reasons=[
            s.Reason(evidence="edge", text="weakest: a shape at an edge", weight=0.1),
            s.Reason(evidence="family", text="custom kernel: can address anything", weight=1.8, lines=[6548]),
            s.Reason(
                evidence="input", text="takes an index tensor", weight=0.9, lines=[6548, 6554, 6560, 6566]
            ),
            s.Reason(evidence="vendor", text="runs once a step without harm", weight=-0.5, lines=[270]),
        ],
    )


def softmax_suspect() -> s.Suspect:
    return s.Suspect(rank=2, op=SOFTMAX, weight=0.2, share=0.004, reasons=[], source=[])


def late() -> s.Result:
    """A late report with a window and suspects."""
    border = s.Border(reason="step 8 was copied to the host and printed", line=6229, proof="copy")
    cleared = s.ClearedOp(op=op("custom__paged_lookup", 270, 5857, step=8), reason="its step was read back")
    return result(
        faults=[fault(), fault(role="cascade", line=6930)],
        window=s.Window(
            first_op=op("rms", 288, 6236, step=9),
            last_op=SOFTMAX,
            size=32,
            size_outer=18,
            steps=[9],
            device="gpu:0",
            begin=border,
            end=s.Border(reason="the report", line=6926),
            proven_begin=True,
        ),
        suspects=[paged_suspect(), softmax_suspect()],
        cleared=s.Cleared(count=288, ops=[cleared], reasons=["steps 0 to 8 were read back"]),
        conclusion=s.Conclusion(
            confidence="likely",
            cause_class="software",
            suspect=1,
            statement="custom__paged_lookup (id 302) in step 9 most likely accessed a bad address.",
        ),
        next_steps=[s.NextStep(command=COMMAND, why="makes the report exact")],
    )


def proven() -> s.Result:
    """An exact report of blocking launches, no window needed."""
    at = s.ReportedAt(kernel="__custom__strided_gather", op_id=8, op_line=136, site="badops.mojo:29:50")
    return result(
        faults=[fault(trust="exact", line=162, reported_at=at, trust_reason="device-sync-mode was on")],
        modes=s.Modes(device_sync_mode=True, coredump=False, op_log_level="TRACE"),
        suspects=[
            s.Suspect(
                rank=1, op=op("custom__strided_gather", 8, 136), weight=9.0, share=1.0, reasons=[], source=[]
            )
        ],
        conclusion=s.Conclusion(
            confidence="proven", cause_class="software", suspect=1, statement="custom__strided_gather failed."
        ),
        replay=s.Replay(verdict="confirmed", statement="failed in 2 of 2 attempts"),
    )


def undecided() -> s.Result:
    """A late report and no op records."""
    at = s.ReportedAt(kernel="__static_broadcast_to_gelu_mul_add_e8c805035e99b0a0")
    return result(
        faults=[fault(line=16, device=None, reported_at=at, trust_reason="")],
        conclusion=s.Conclusion(
            confidence="undecided",
            cause_class="software",
            suspect=None,
            statement="Nothing in this log tells which op failed.",
            notes=["The kernel that the report names met the fault; it did not make it."],
        ),
        next_steps=[s.NextStep(command="MODULAR_DEBUG=device-sync-mode python serve.py", why="names the op")],
    )


def clean() -> s.Result:
    """No fault, and a NaN check that looked at little."""
    check = s.NanCoverage(graph="decoder", checked=1, of=5, stride=20, line=1)
    return result(modes=s.Modes(nan_check=[check]))


def losses() -> s.Result:
    """Two inputs, two processes with a fault each, and text that no grammar read."""
    second = s.InputInfo(path="logs/rank1.log", size_bytes=10, lines=3, notes=["the last line is cut"])
    return result(
        inputs=[*result().inputs, second],
        faults=[
            fault(process="rank0", rank=0),
            fault(process="rank1", rank=1, input=1, line=3),
        ],
        losses=[
            s.Loss(input=1, line=2, witness="max_ops", text="[OP] LAUNCH (", why="unexpected end", count=2),
        ],
        losses_omitted=5,
    )


def hostile() -> s.Result:
    """Every text that a log can bring holds markup and control characters."""
    suspect = s.Suspect(
        rank=1,
        op=op(HOSTILE, 1, 1),
        weight=1.0,
        share=1.0,
        reasons=[s.Reason(evidence="x", text=HOSTILE, weight=1.0)],
        source=[s.SourceFrame(file=HOSTILE, line=1, function=HOSTILE, text=HOSTILE)],
    )
    return result(
        inputs=[s.InputInfo(path=HOSTILE, size_bytes=1, lines=1, notes=[HOSTILE])],
        faults=[fault(text=HOSTILE, name=HOSTILE, device=HOSTILE, process=HOSTILE, trust_reason=HOSTILE)],
        suspects=[suspect],
        cleared=s.Cleared(
            count=1, ops=[s.ClearedOp(op=op(HOSTILE, 2, 2), reason=HOSTILE)], reasons=[HOSTILE]
        ),
        conclusion=s.Conclusion(
            confidence="ranked", cause_class=None, suspect=1, statement=HOSTILE, notes=[HOSTILE]
        ),
        next_steps=[s.NextStep(command=HOSTILE, why=HOSTILE)],
        losses=[s.Loss(input=0, line=1, witness="max_ops", text=HOSTILE, why=HOSTILE)],
    )


ALL = {one.__name__: one() for one in (late, proven, undecided, clean, losses, hostile)}
