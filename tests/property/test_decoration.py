"""What stands around a log changes no verdict: prefixes, farewells at its end, its last line end."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from analyzer.pipeline import analyze
from analyzer.schema import Result
from analyzer.scoreboard import Case
from tests import samples
from tests.prefixes import PREFIXES

WRAPPERS = sorted(PREFIXES)
# An export has a dozen lines for each one, and limits on how far two lines may stand apart count lines.
NO_LINES_KEPT = "journal export"
# With a pid before each line, what a driver says of that pid is known to be about the writer.
NAMES_PID = frozenset(name for name in WRAPPERS if name.startswith("journal"))
CERTAINTY = ("none", "undecided", "ranked", "likely", "proven", "confirmed")
FAREWELL = ("INFO:     Shutting down", "INFO:     Waiting for application shutdown.",
            "INFO:     Application shutdown complete.", "INFO:     Finished server process [1]")  # fmt: skip


def told(result: Result) -> tuple[object, ...]:
    """Suspect and root, without line numbers."""
    root = samples.root_fault(result)
    first = next((one for one in result.suspects if one.rank == result.conclusion.suspect), None)
    return (first and (first.op.name, first.op.id), root and (root.kind, root.text))


def content(case: Case) -> bytes:
    path = case.folder / case.inputs[0]
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def analysed(case: Case, data: bytes, folder: Path) -> Result:
    path = folder / "input.log"
    path.write_bytes(data)
    return analyze([str(path), *case.paths()[1:]], case.analysis_options(case.folder))


def wrapped(data: bytes, wrapper: str) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    lines = text.removesuffix("\n").split("\n")
    end = "\n" if text.endswith("\n") else ""
    return ("\n".join(PREFIXES[wrapper](lines)) + end).encode("utf-8", "surrogateescape")


def check(case: Case, wrapper: str, folder: Path) -> None:
    before = samples.analysis(case.name)
    after = analysed(case, wrapped(content(case), wrapper), folder)
    assert told(after) == told(before), wrapper
    sure = [CERTAINTY.index(one.conclusion.confidence) for one in (before, after)]
    assert sure[0] == sure[1] or (wrapper in NAMES_PID and sure[0] < sure[1]), wrapper


def chosen(case: Case) -> list[str]:
    """One prefix by a hash of the name, the same in each run."""
    usable = [name for name in WRAPPERS if name != NO_LINES_KEPT]
    return [usable[zlib.crc32(case.name.encode()) % len(usable)]]


@pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)
def test_a_prefix_changes_no_verdict(case: Case, tmp_path: Path) -> None:
    for wrapper in chosen(case):
        check(case, wrapper, tmp_path)


def test_each_prefix_is_tried_on_several_samples() -> None:
    shown = [name for case in samples.cases() for name in chosen(case)]
    assert all(shown.count(name) > 3 for name in WRAPPERS if name != NO_LINES_KEPT)


@pytest.mark.heavy
@pytest.mark.parametrize("wrapper", [name for name in WRAPPERS if name != NO_LINES_KEPT])
@pytest.mark.parametrize("case", samples.cases(), ids=lambda case: case.name)
def test_every_prefix_changes_no_verdict(case: Case, wrapper: str, tmp_path: Path) -> None:
    check(case, wrapper, tmp_path)


def written(folder: Path, text: str) -> Result:
    path = folder / "input.log"
    path.write_text(text, encoding="utf-8")
    return analyze([str(path)])


CRASH = """\
Traceback (most recent call last):
RuntimeError: Failed to compile the model. Please file an issue.
15:21:44.910 ERROR: Worker exception, shutting down: Worker died
ERROR:    Application startup failed. Exiting.
"""


@pytest.mark.parametrize("lines", [1, 2, 4])
def test_lines_of_an_orderly_end_change_no_verdict(tmp_path: Path, lines: int) -> None:
    """They tell of no work that went on."""
    before = written(tmp_path, CRASH)
    after = written(tmp_path, CRASH + "\n".join(FAREWELL[:lines]) + "\n")
    assert before.conclusion.confidence == after.conclusion.confidence == "proven"
    assert told(before) == told(after)


def test_a_server_that_answers_again_has_not_ended(tmp_path: Path) -> None:
    """A farewell later on does not make an old exception the last word."""
    answers = 'INFO:     10.0.0.7:1 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 3
    text = "Traceback (most recent call last):\nRuntimeError: one request\n" + answers
    assert written(tmp_path, text + "\n".join(FAREWELL) + "\n").conclusion.confidence == "none"


DNN = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/srv/app/core.py", line 17, in <module>
    EPS = jnp.array(1e-8)
jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed. Look at the \
errors above for more details."""
KILLED = (
    "[26002.109061] Out of memory: Killed process 576419 (python) total-vm:78521468kB, anon-rss:54398260kB, "
    "file-rss:2628kB, shmem-rss:0kB, UID:1000 pgtables:119448kB oom_score_adj:0"
)


@pytest.mark.parametrize("text", [DNN, KILLED])
def test_a_whole_last_line_without_its_end_is_not_cut(tmp_path: Path, text: str) -> None:
    before, after = written(tmp_path, text + "\n"), written(tmp_path, text)
    assert before.conclusion.confidence == after.conclusion.confidence == "proven"
    assert told(before) == told(after)


@pytest.mark.parametrize("end", [" Look at the err", " Look", ": DNN libr"])
def test_half_a_sentence_is_cut(tmp_path: Path, end: str) -> None:
    text = DNN.partition(" Look")[0] if end[1] == "L" else DNN.partition(": DNN")[0]
    assert written(tmp_path, text + end).conclusion.confidence == "undecided"


BLOCK = """\
Traceback (most recent call last):
  File "/srv/app/cases.py", line 53, in main
    r = m.execute(x, w)[0]
ValueError: An error occurred in kernel entry point named "__matmul_8d3b_async":
An error occurred in kernel named "__custom__strided_gather":
/srv/app/kernels/badops.mojo:29:50 failed calling 'def() -> None|k' on device cuda:0 with error 'CUDA call \
failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)'

Fusion info:
  cu"""


def test_a_name_at_the_end_of_the_input_is_nobodys(tmp_path: Path) -> None:
    found = written(tmp_path, BLOCK)
    assert found.conclusion.confidence == "undecided"
    assert not found.suspects
    assert "inside the name" in found.conclusion.statement


@pytest.mark.parametrize("tag", ["[pod/serve-7f9c4/main] ", "serve-1  | "])
def test_a_tag_before_each_line_changes_nothing(tmp_path: Path, tag: str) -> None:
    text = BLOCK.removesuffix("\n  cu") + "\n  custom__strided_gather : (!mo.tensor<[4], f32, gpu:0>)\n"
    tagged = "".join(f"{tag}{line}\n" for line in text.splitlines())
    before, after = written(tmp_path, text), written(tmp_path, tagged)
    assert told(before) == told(after)
    assert before.conclusion.confidence == after.conclusion.confidence == "proven"
