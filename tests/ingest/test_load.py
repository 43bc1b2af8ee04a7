"""One source after ingest: op records, gated lines, notes; whatever the bytes look like."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from analyzer.errors import InputError
from analyzer.ingest import lines as scanning
from analyzer.ingest.lines import Scan, scan
from analyzer.ingest.load import Loaded, load
from analyzer.ingest.long_lines import LINE_BYTES
from analyzer.ingest.source import open_sources
from tests.oplog import block, complete, launch, loaded, pair, steps, text

GATE = "CUDA call failed: "
ERROR = f"RuntimeError: {GATE}CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
BAR = "Capturing CUDA graphs: 100%|\u2588\u2588| 16/16 [00:10<00:00, 1.09it/s]"  # formats.md 7.1


def ops(one: Loaded) -> list[tuple[object, ...]]:
    """(line, event, name, id) of each op record."""
    event = pl.when("launch").then(pl.lit("LAUNCH")).otherwise(pl.lit("COMPLETE"))
    return one.ops.select("line", event.alias("e"), pl.col("name").cast(pl.String), "id").rows()


def read(data: bytes | Sequence[str]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]], list[str]]:
    """Op records, gated (line, text) and notes."""
    with loaded(data, [GATE]) as one:
        return ops(one), one.gated.select("line", "text").rows(), one.notes


PLAIN = [*pair("matmul", 0), *pair("custom__lookup", 1), ERROR]
PLAIN_OPS = [
    (1, "LAUNCH", "matmul", 0),
    (2, "COMPLETE", "matmul", 0),
    (3, "LAUNCH", "custom__lookup", 1),
    (4, "COMPLETE", "custom__lookup", 1),
]


@pytest.mark.parametrize(
    "data",
    [
        text(PLAIN),
        text(PLAIN)[:-1],
        text(PLAIN).replace(b"\n", b"\r\n"),
        text(PLAIN).replace(b"\n", b"\r\n", 2),
        text(PLAIN).replace(b"matmul", b"mat\x00mul").replace(b"Runtime", b"\x00Runtime\x00\x00"),
        text([f"\x1b[36m{line}\x1b[0m" for line in PLAIN]),
        b"\xef\xbb\xbf" + text(PLAIN),
        b"\xff\xfe" + text(PLAIN).decode().encode("utf-16-le"),
        b"\xfe\xff" + text(PLAIN).decode().encode("utf-16-be"),
        text([f"[rank3]: {line}" for line in PLAIN]),
        text([f"\x1b[36m[rank3]:\x1b[0m {line}" for line in PLAIN]),
    ],
    ids=[
        "plain", "no line end at the end", "CRLF", "CRLF and LF", "NUL", "ANSI", "UTF-8 mark", "UTF-16-LE",
        "UTF-16-BE", "rank", "rank with colour",
    ],
)  # fmt: skip
def test_same_log_in_another_dress_gives_the_same_records(data: bytes) -> None:
    found, gated, _notes = read(data)
    assert found == PLAIN_OPS
    assert gated == [(5, ERROR)]


class TestSharedLines:
    """Several things in one line (formats.md 7.1, 7.2)."""

    def test_two_records_in_one_line_are_both_read(self) -> None:
        found, _, _ = read([launch("a", 0) + launch("b", 1)])
        assert found == [(1, "LAUNCH", "a", 0), (1, "LAUNCH", "b", 1)]

    def test_record_behind_the_torn_beginning_of_another_is_read(self) -> None:
        found, _, _ = read(["[OP] LAUN" + complete("b", 1)])
        assert found == [(1, "COMPLETE", "b", 1)]

    @pytest.mark.parametrize("glue", ["\r", "", "\r\r"])
    def test_record_behind_a_progress_bar_is_read(self, glue: str) -> None:
        found, _, _ = read([BAR + glue + launch("a", 7)])
        assert found == [(1, "LAUNCH", "a", 7)]

    @pytest.mark.parametrize("glue", ["\r", "", "\r\r"])
    def test_error_behind_a_progress_bar_is_read(self, glue: str) -> None:
        _, gated, _ = read([BAR + glue + ERROR])
        number, line = gated[-1]
        assert number == 1
        assert str(line).endswith(ERROR)

    @pytest.mark.parametrize("line", [launch("a", 7) + ERROR, ERROR + launch("a", 7)])
    def test_error_and_record_in_one_line_are_both_read(self, line: str) -> None:
        """Standard output and standard error of one process meet in a pipe."""
        found, gated, _ = read([line])
        assert found == [(1, "LAUNCH", "a", 7)]
        assert [number for number, _ in gated] == [1]

    def test_text_that_only_mentions_a_record_is_none(self) -> None:
        with loaded(["the line '[OP] LAUNCH' shows a launch", "see [OP] records"], [GATE]) as one:
            assert one.ops.is_empty()
            assert one.cut_ops.is_empty()


class TestCutRecords:
    """A record whose id cannot be known is told, never guessed."""

    @pytest.mark.parametrize("size", range(5, len("[OP] LAUNCH matmul [id=30") + 1))
    def test_record_cut_before_the_end_of_its_id_is_told(self, size: int) -> None:
        """``[id=30`` of a cut line may be the beginning of 302."""
        cut = "[OP] LAUNCH matmul [id=302] target=gpu:0"[:size]
        with loaded(text([*pair("a", 0), cut])[:-1], [GATE]) as one:
            assert ops(one) == [(1, "LAUNCH", "a", 0), (2, "COMPLETE", "a", 0)]
            assert one.cut_ops["line"].to_list() == [3]

    def test_record_cut_behind_its_id_is_read(self) -> None:
        found, _, _ = read(text(["[OP] LAUNCH matmul [id=302] targ"])[:-1])
        assert found == [(1, "LAUNCH", "matmul", 302)]

    @pytest.mark.parametrize("number", [str(2**64), str(2**63), "-1", "x", ""])
    def test_id_that_no_counter_reaches_is_told(self, number: str) -> None:
        with loaded([f"[OP] LAUNCH matmul [id={number}] target=gpu:0"], [GATE]) as one:
            assert one.ops.is_empty()
            assert one.cut_ops["line"].to_list() == [1]


class TestUndecodableBytes:
    """One wrong byte must not cost the file."""

    def test_half_a_character_at_the_end_is_replaced(self) -> None:
        """The disk was full, or the process died, inside a bar of ``\u2588``."""
        found, gated, notes = read(text(PLAIN) + "\u2588".encode()[:2])
        assert (found, gated) == (PLAIN_OPS, [(5, ERROR)])
        assert notes == ["2 undecodable bytes replaced by U+FFFD"]

    def test_half_a_character_in_a_line_keeps_the_line(self) -> None:
        _, gated, notes = read(b"bar \xe2\x96" + text([ERROR]))
        assert gated == [(1, f"bar \ufffd{ERROR}")]
        assert notes == ["2 undecodable bytes replaced by U+FFFD"]

    def test_latin_1_is_read_with_replacements(self) -> None:
        found, _, notes = read("Größe: Maß\n".encode("latin-1") + text(PLAIN))
        assert len(found) == len(PLAIN_OPS)
        assert notes == ["3 undecodable bytes replaced by U+FFFD"]


class TestContainerLines:
    """Runtimes cut long lines; the parts are one line again (formats.md 6)."""

    LONG = f"[OP] LAUNCH Epilogue({', '.join(['mul'] * 8000)}, operandIndices=[0]) [id=4] target=gpu:0"

    def test_cri_parts_are_joined_at_the_line_of_the_first(self) -> None:
        stamp = "2026-11-30T01:02:03.123456789Z stdout"
        parts = [self.LONG[at : at + 16_384] for at in range(0, len(self.LONG), 16_384)]
        lines = [f"{stamp} P {part}" for part in parts[:-1]] + [f"{stamp} F {parts[-1]}"]
        found, gated, notes = read([*lines, f"{stamp} F {ERROR}"])
        assert [(row[0], row[3]) for row in found] == [(1, 4)]
        assert gated == [(len(lines) + 1, ERROR)]
        assert notes == [f"{len(lines) - 1} partial container lines joined"]

    def test_character_cut_in_half_between_two_parts_is_whole_or_replaced(self) -> None:
        """The runtime cuts at bytes, not at characters."""
        stamp = b"2026-11-30T01:02:03.123456789Z stdout"
        bar = "\u2588".encode()
        data = stamp + b" P " + bar[:1] + b"\n" + stamp + b" F " + bar[1:] + text([ERROR])
        _, gated, notes = read(data)
        assert [number for number, _ in gated] == [1]
        assert str(gated[0][1]).endswith(ERROR)
        assert notes[0] == "1 partial container lines joined"

    def test_docker_parts_of_16_kb_are_joined(self) -> None:
        parts = [self.LONG[at : at + 16_384] for at in range(0, len(self.LONG), 16_384)]
        parts[-1] += "\n"
        records = [
            json.dumps(
                {"log": part, "stream": "stdout", "time": "2026-11-30T01:02:03.1Z"}, separators=(",", ":")
            )
            for part in [*parts, ERROR + "\n"]
        ]
        found, gated, notes = read(records)
        assert [(row[0], row[3]) for row in found] == [(1, 4)]
        assert gated == [(len(records), ERROR)]
        assert notes == [f"{len(parts) - 1} partial container lines joined"]


class TestLongLines:
    """A line without end must neither stop the analysis nor hide what stands behind it."""

    @staticmethod
    def check(size: int, deadline_s: float) -> None:
        started_s = time.monotonic()
        redrawn = "x " * (size // 4) + "\r" + ERROR
        found, gated, notes = read([*PLAIN, "y" * (size // 2), redrawn, launch("matmul", 2)])
        assert found[-1] == (8, "LAUNCH", "matmul", 2)
        assert (gated[0], gated[-1]) == ((5, ERROR), (7, ERROR))
        assert [note.split(" bytes cut; ")[0] for note in notes] == [f"2 lines longer than {LINE_BYTES}"]
        assert time.monotonic() - started_s < deadline_s

    def test_line_of_megabytes_is_read(self) -> None:
        self.check(5_000_000, 20)

    def test_line_of_nearly_the_limit_is_read_to_its_end(self) -> None:
        glued = "x " * (LINE_BYTES // 2 - len(ERROR)) + ERROR
        assert read([*PLAIN, glued])[1:] == ([(5, ERROR), (6, glued)], [])

    def test_utf_16_is_cut_behind_decoding(self) -> None:
        """A byte that looks like a line end is half of a character there."""
        data = "\n".join(["\u0a0a" * LINE_BYTES, ERROR, ""]).encode("utf-16")
        _, gated, (note,) = read(data)
        assert gated == [(2, ERROR)]
        assert note.startswith(f"1 line longer than {LINE_BYTES} bytes cut; ")

    def test_joined_container_parts_are_cut(self) -> None:
        stamp = "2026-11-30T01:02:03.123456789Z stdout"
        parts = [f"{stamp} P {'x ' * 8_000}"] * (LINE_BYTES // 16_000 + 1)
        _, gated, notes = read([*parts, f"{stamp} F end", f"{stamp} F {ERROR}"])
        assert gated == [(len(parts) + 2, ERROR)]
        assert len(notes) == 2
        assert notes[1].startswith("1 line longer than")

    @pytest.mark.heavy
    def test_line_of_a_hundred_megabytes_is_read(self) -> None:
        self.check(200_000_000, 120)


class TestGrowingFile:
    """The server may still write."""

    def test_what_was_there_at_first_is_analysed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Lines that came during the pass are not half in, half out."""
        path = tmp_path / "serve.log"
        path.write_bytes(text(PLAIN))
        scans = 0

        def growing(scanned: Path, literals: Sequence[str]) -> Scan:
            nonlocal scans
            scans += 1
            found = scan(scanned, literals)
            if scans == 1:
                with path.open("ab") as file:
                    file.write(text(pair("late", 2)))
            return found

        monkeypatch.setattr(scanning, "scan", growing)
        size = path.stat().st_size
        with open_sources([str(path)]) as (source,):
            one = load(source, [GATE], tmp_path)
            try:
                assert ops(one) == PLAIN_OPS
                assert one.total_lines == len(PLAIN)
                assert one.reader.raw(1, 99) == PLAIN
                told = f"the file grew while it was read; its first {size} bytes are analysed"
                assert one.notes == [told]
            finally:
                one.reader.close()

    def test_file_that_was_emptied_meanwhile_is_told(self, tmp_path: Path) -> None:
        """``copytruncate`` of logrotate."""
        path = tmp_path / "serve.log"
        path.write_bytes(text(PLAIN))
        with open_sources([str(path)]) as (source,):
            path.write_bytes(b"")
            with pytest.raises(InputError, match="was emptied or shortened while it was read"):
                load(source, [GATE], tmp_path)

    def test_file_that_vanished_meanwhile_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "serve.log"
        path.write_bytes(text(PLAIN))
        with open_sources([str(path)]) as (source,):
            path.unlink()
            with pytest.raises(InputError, match="vanished while it was read"):
                load(source, [GATE], tmp_path)

    def test_busy_writer_does_no_harm(self, tmp_path: Path) -> None:
        """A real writer, flushing as fast as it can."""
        path = tmp_path / "serve.log"
        path.write_bytes(text(steps(50)))
        stop = threading.Event()

        def write() -> None:
            with path.open("ab", buffering=0) as file:
                number = 150
                while not stop.is_set():
                    file.write(text(pair("late", number)))
                    number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with open_sources([str(path)]) as (source,):
                one = load(source, [GATE], tmp_path)
                rows, lines = one.ops.height, one.total_lines
                one.reader.close()
        finally:
            stop.set()
            writer.join()
        assert rows >= 300
        assert lines >= 350


def test_body_lines_of_crlf_logs_are_found() -> None:
    lines = [*block("LAUNCH", "mul", 0), *block("COMPLETE", "mul", 0)]
    with loaded(text(lines).replace(b"\n", b"\r\n"), [GATE]) as one:
        assert one.ops["body_last"].to_list() == [5, 10]


def test_file_without_any_record_gives_empty_frames() -> None:
    found, gated, notes = read(b"\n\nhello\n")
    assert (found, gated, notes) == ([], [], [])
