"""The command line as its users run it: a child process, its output and its exit code."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from analyzer.cli.analyze import parse_window
from analyzer.errors import UsageError
from analyzer.grammar import data_path
from tests.oplog import complete, launch, pair, steps, text

ROOT = Path(__file__).parents[1]
SAMPLES = data_path("sample_logs")
FAILED = str(SAMPLES / "max_errors/oob_async/input.log")
CLEAN = str(SAMPLES / "max_ops/clean_async/input.log")
ERROR = (
    "RuntimeError: CUDA call failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
)


def start(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """``trace-analyze`` with these arguments, its outputs piped."""
    command = [sys.executable, "-m", "analyzer", *arguments]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, **{**pipes, **options})  # type: ignore[call-overload, no-any-return]


def run(*arguments: str, data: bytes | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    child = start(*arguments, stdin=subprocess.DEVNULL if data is None else subprocess.PIPE)
    out, err = child.communicate(data, timeout=60)
    return child.returncode, out.decode(), err.decode()


run_sample = cache(run)  # the samples do not change: one child a call that several tests look at


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "serve.log"


class TestBadInput:
    """Design 8: a clear answer, an exit code, and nothing lost."""

    def refused(self, path: Path | str, told: str) -> None:
        code, out, err = run(str(path))
        assert (code, out) == (3, "")
        assert err == f"trace-analyze: {path}: {told}\n"

    def test_missing_file(self, log: Path) -> None:
        self.refused(log, "no such file")

    def test_directory(self, tmp_path: Path) -> None:
        self.refused(tmp_path, "is a directory; give the log files in it")

    def test_empty_file(self, log: Path) -> None:
        log.touch()
        self.refused(log, "is empty; was the log written to another file, or the stream not redirected?")

    def test_binary_file(self, log: Path) -> None:
        log.write_bytes(os.urandom(20_000))
        self.refused(
            log,
            "is a binary file, not a log; a GPU core dump is read with cuda-gdb -batch"
            ' -ex "target cudacore FILE" -ex "info cuda kernels" > gpu.txt',
        )

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
    def test_unreadable_file(self, log: Path) -> None:
        log.write_bytes(b"x\n")
        log.chmod(0)
        self.refused(log, "permission denied")

    def test_one_bad_input_among_good_ones(self, log: Path) -> None:
        """Half an analysis would pass for a whole one."""
        code, out, err = run_sample(FAILED, str(log))
        assert (code, out) == (3, "")
        assert err.startswith(f"trace-analyze: {log}: no such file")

    def analysed(self, log: Path, data: bytes | Sequence[str], *told: str) -> None:
        log.write_bytes(data if isinstance(data, bytes) else text(data))
        code, out, err = run(str(log), "--width", "200")
        assert (code, err) == (0, "")
        for part in told:
            assert part in out, out

    def test_text_that_is_no_log_is_analysed_and_says_what_was_tried(self, log: Path) -> None:
        self.analysed(
            log, b"hello\nworld\n", "no witness recognised; tried: max_ops, ", " more\n", "2 lines: 0 parsed"
        )

    def test_half_a_character_is_told(self, log: Path) -> None:
        data = text([*steps(2), ERROR]) + "\u2588".encode()[:2]
        self.analysed(log, data, "2 undecodable bytes replaced by U+FFFD", "CUDA_ERROR_ILLEGAL_ADDRESS")

    def test_cut_last_line_is_told(self, log: Path) -> None:
        self.analysed(
            log, text([*steps(2), launch("matmul", 6)])[:-20], "op record without an id: cut off", "line 15"
        )

    @pytest.mark.parametrize("hazard", ["nul", "crlf", "colour", "bar", "two_writers", "long_line"])
    def test_hazard_loses_nothing(self, log: Path, hazard: str) -> None:
        """The error is found, every line is counted, nothing is called unread."""
        lines = [*steps(2), ERROR]
        if hazard == "colour":
            lines = [f"\x1b[31m{line}\x1b[0m" for line in lines]
        elif hazard == "bar":
            lines[-1] = f"Capturing: 100%|\u2588| 16/16 [00:10<00:00, 1.09it/s]\r{ERROR}"
        elif hazard == "two_writers":
            lines[-1] = launch("softmax", 6) + ERROR
        elif hazard == "long_line":
            lines.insert(0, "x" * 1_000_000)
        data = text(lines)
        if hazard == "nul":
            data = data.replace(b"Runtime", b"\x00\x00Runtime\x00")
        elif hazard == "crlf":
            data = data.replace(b"\n", b"\r\n")
        counted = f"{len(lines)} lines: {len(lines) - (hazard == 'long_line')} parsed"
        self.analysed(log, data, "nvidia 700 CUDA_ERROR_ILLEGAL_ADDRESS", counted, ", 0 unrecognised")

    def test_several_runs_in_one_file_are_all_counted(self, log: Path) -> None:
        self.analysed(log, [*steps(2), *steps(3), ERROR], "15 ops in 5 steps")

    def test_completion_without_launch_and_launch_without_completion_are_counted(self, log: Path) -> None:
        log.write_bytes(text([complete("lost", 40), *pair("a", 41), launch("open", 42)]))
        code, out, err = run(str(log), "--format", "json")
        timeline = json.loads(out)["timeline"]
        assert (code, err) == (0, "")
        assert (timeline["ops"], timeline["completed"], timeline["unmatched_completions"]) == (2, 1, 1)

    def test_launch_printed_twice_is_told_as_several_writers(self, log: Path) -> None:
        """The id is no longer the name of one op."""
        log.write_bytes(text([*pair("a", 1), launch("b", 2), launch("b", 2), ERROR]))
        _, out, _ = run(str(log), "--format", "json")
        (process,) = json.loads(out)["processes"]
        assert process["notes"] == ["several writers without tags share this log"]


class TestJson:
    """``--format json`` prints the result and nothing else."""

    def test_standard_output_is_one_document_of_the_published_schema(self) -> None:
        code, out, err = run_sample(FAILED, "--format", "json")
        _, schema, _ = run_sample("schema")
        assert (code, err) == (0, "")
        jsonschema.Draft202012Validator.check_schema(json.loads(schema))
        jsonschema.validate(json.loads(out), json.loads(schema))
        assert out.endswith("}\n")

    def test_failure_leaves_standard_output_empty(self) -> None:
        code, out, err = run_sample(FAILED, "--format", "json", "--process", "nobody")
        assert (code, out) == (2, "")
        assert "--process 'nobody': no such process; no op record of the log carries the tag of one" in err

    def test_standard_input_gives_the_same_findings_as_the_file(self) -> None:
        _, from_file, _ = run_sample(FAILED, "--format", "json")
        code, piped, _ = run("-", "--format", "json", data=gzip.compress(Path(FAILED).read_bytes()))
        both = [json.loads(out) for out in (from_file, piped)]
        assert code == 0
        assert both[1]["inputs"][0]["path"] == "<stdin>"
        assert both[0]["suspects"] == both[1]["suspects"]
        assert both[0]["conclusion"] == both[1]["conclusion"]


class TestOptions:
    """What each option changes."""

    @pytest.mark.parametrize(("path", "code"), [(FAILED, 1), (CLEAN, 0)])
    def test_check_exits_1_only_where_a_root_fault_was_found(self, path: str, code: int) -> None:
        found, out, err = run_sample(path, "--check")
        assert (found, err) == (code, "")
        assert out, "the report is printed all the same"

    def test_strict_exits_4_with_the_first_unread_text(self, log: Path) -> None:
        log.write_bytes(text([*steps(1), launch("matmul", 3)])[:-20])
        code, out, err = run(str(log), "--strict", "--check")
        assert code == 4
        assert err.startswith(f"trace-analyze: {log}:8: op record without an id: cut off (1 such")
        assert "8 lines" in out

    def test_strict_is_content_with_a_log_that_was_read_whole(self) -> None:
        assert run_sample(FAILED, "--strict")[0] == 0

    def test_quiet_changes_nothing_on_standard_output(self) -> None:
        assert run_sample(FAILED, "--quiet") == run_sample(FAILED)

    def test_top_limits_the_suspects_shown_not_those_found(self) -> None:
        _, one, _ = run_sample(FAILED, "--top", "1")
        _, three, _ = run_sample(FAILED)
        assert ("  1. " in one, "  2. " in one, "  2. " in three) == (True, False, True)
        _, out, _ = run_sample(FAILED, "--top", "1", "--format", "json")
        assert len(json.loads(out)["suspects"]) > 1

    def test_window_takes_the_ops_of_these_lines(self) -> None:
        """Line 8 launches op 0; op 4 is launched far behind line 40."""
        code, out, _ = run_sample(FAILED, "--window", "1:40", "--format", "json")
        window = json.loads(out)["window"]
        assert code == 0
        assert (window["first_op"]["id"], window["size_outer"]) == (0, 1)
        assert window["begin"]["reason"].startswith("asked for with --window; it leaves out ")

    @pytest.mark.parametrize("value", ["5", "9:5", "0:4", "a:b", ":", "1:", "-3:4", "\u00b2:\u00b3", ""])
    def test_window_that_is_no_window_is_refused(self, value: str) -> None:
        with pytest.raises(UsageError, match="give the first and last line of the window as FIRST:LAST"):
            parse_window(value)

    def test_window_that_is_no_window_exits_2(self) -> None:
        code, out, err = run(FAILED, "--window", "9:5")
        assert (code, out) == (2, "")
        told = "trace-analyze: --window '9:5': give the first and last line of the window as FIRST:LAST\n"
        assert err == told

    def test_process_takes_the_ops_of_one_process(self, log: Path) -> None:
        lines = [f"[rank{rank}]: {line}" for line in steps(2) for rank in (0, 1)]
        log.write_bytes(text([*lines, ERROR]))
        _, undecided, _ = run(str(log), "--format", "json")
        code, out, _ = run(str(log), "--process", "rank1", "--format", "json")
        assert json.loads(undecided)["suspects"] == []
        assert code == 0
        assert {one["op"]["process"] for one in json.loads(out)["suspects"]} == {"rank1"}

    def test_unknown_process_of_a_log_without_ops_is_told(self, log: Path) -> None:
        log.write_bytes(text([ERROR]))
        code, _, err = run(str(log), "--process", "rank7")
        assert code == 2
        assert "--process 'rank7': no such process; the log has no op records" in err

    def test_unknown_process_is_told_with_those_there_are(self, log: Path) -> None:
        log.write_bytes(text([f"[rank{rank}]: {line}" for line in steps(1) for rank in (0, 1)]))
        code, _, err = run(str(log), "--process", "rank7")
        assert code == 2
        assert "no such process; the op records are of 'rank0', 'rank1'" in err

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--bogus", FAILED),
            (FAILED, "--format", "xml"),
            (FAILED, "--top", "0"),
            (),
        ],
    )
    def test_call_that_makes_no_sense_exits_2(self, arguments: tuple[str, ...]) -> None:
        code, out, err = run(*arguments)
        assert code == 2
        assert "Usage: " in out + err

    def test_version_and_help(self) -> None:
        assert run("--version")[:2] == (0, run_sample("version")[1])
        code, out, _ = run("--help")
        assert code == 0
        assert {"--format", "--window", "--check", "--strict", "record", "schema"} <= set(out.split())
        assert "Usage: trace-analyze [OPTIONS] [" in out.replace("python -m analyzer", "trace-analyze")
        assert run("analyze", "--help")[1] == out

    def test_help_of_record_says_where_the_command_stands(self) -> None:
        code, out, _ = run("record", "--help")
        assert code == 0
        assert "record [OPTIONS] -- COMMAND" in out


class TestOutput:
    """Where the output goes."""

    def test_no_colour_codes_when_piped(self) -> None:
        """A log of another program's colours is shown without them as well."""
        for path in (FAILED, CLEAN):
            assert "\x1b" not in "".join(run_sample(path)[1:])

    def test_reader_that_goes_away_is_no_error(self) -> None:
        """``trace-analyze serve.log | head -1``: no message, and not the exit code of --check."""
        read, write = os.pipe()
        os.close(read)
        child = start(FAILED, "--format", "json", stdout=write)
        os.close(write)
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (141, b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
    def test_full_disk_is_told(self) -> None:
        with Path("/dev/full").open("wb") as full:
            child = start(FAILED, stdout=full)
            _, err = child.communicate(timeout=60)
        assert child.returncode == 74
        assert err == b"trace-analyze: standard output: cannot be written: No space left on device\n"

    def test_named_pipe_is_an_input(self, log: Path) -> None:
        os.mkfifo(log)
        child = start(str(log), "--format", "json")
        data = Path(FAILED).read_bytes()
        threading.Thread(
            target=log.write_bytes, args=(data,), daemon=True
        ).start()  # blocks until it is opened
        out, _ = child.communicate(timeout=60)
        assert json.loads(out)["conclusion"]["suspect"] == 1

    def test_crash_of_ours_has_its_own_exit_code(self) -> None:
        """It must not look like ``--check``."""
        code = (
            "import sys, analyzer.cli as c, analyzer.cli.analyze as a\n"
            "a.open_analysis = lambda *_: 1 / 0\n"
            f"sys.argv = ['trace-analyze', {FAILED!r}]\n"
            "c.main()"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (70, b"")
        assert b"ZeroDivisionError" in done.stderr
        assert done.stderr.endswith(b"this is a bug of ours; please report it with the text above\n")
