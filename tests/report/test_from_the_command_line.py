"""Reports as a user makes them: a real replay in child processes, and a private log with ``--redact``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

PROGRAM = """
import sys
print("step 0", flush=True)
raise RuntimeError("CUDA error: an illegal memory access was encountered")
"""
ROOT = Path(__file__).parents[2]
ENDINGS = ("md", "html", "json", "sarif", "xml", "perfetto.json")
# What must not leave the company, each in a line that a server could have printed beside its error.
PRIVATE = {
    "alice": 'File "/home/alice/llm/serve.py", line 3, in main',
    "acme-corp": 'File "/data/acme-corp/llama/serve.py", line 30, in forward',
    "zetacorp": "loading /opt/zetacorp/models/x.safetensors",
    "John Smith": "config C:\\Users\\John Smith\\serve.yaml",
    "gpu-17": "connected to gpu-17.dc2.initech.com port 80",
    "initech": "endpoint https://llm.initech.com/v1/models",
    "10.20.30.40": "peer 10.20.30.40:29500 closed the connection",
    "2001:db8::17": "peer [2001:db8::17]:29500 closed the connection",
    "vllm-llama-7d9f8b6c5d": "pod vllm-llama-7d9f8b6c5d-x2x4z is ready",
    "bob@initech.com": "contact bob@initech.com for access",
    "hunter2secret": "postgres://svc:hunter2secret@db.initech.com/x",
    "sk-proj-abcdEFGH1234567890abcd": "OPENAI_API_KEY=sk-proj-abcdEFGH1234567890abcd",
    "hf_abcdefghijklmnopqrst": "token hf_abcdefghijklmnopqrst in use",
    "AKIAIOSFODNN7EXAMPLE": "aws AKIAIOSFODNN7EXAMPLE",
    "eyJzdWIiOiIxMjM0In0": "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
    "abc.def-123456": "Authorization: Bearer abc.def-123456",
    "my PIN is 1234": "Dumping input data prompt: 'my PIN is 1234', prompt_token_ids=[151643, 9707]",
    "151643, 9707": "prompt_token_ids: [151643, 9707, 11]",
}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "analyzer", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_reports_of_a_real_replay_tell_its_attempts(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    first = subprocess.run(
        [sys.executable, "prog.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (tmp_path / "serve.log").write_text(first.stdout + first.stderr, encoding="utf-8")
    reports = [part for ending in ENDINGS for part in ("--report", f"r.{ending}")]
    done = run(tmp_path, "serve.log", *reports, "--replay", "--", sys.executable, "prog.py")
    assert done.returncode == 0, done.stderr
    replay = json.loads((tmp_path / "r.json").read_bytes())["replay"]
    outputs = [Path(one["output"]) for one in replay["attempts"]]
    assert len(outputs) >= 2
    assert all(path.is_file() for path in outputs)
    suite = ET.parse(tmp_path / "r.xml").getroot()[0]  # noqa: S314 (our own text)
    names = [case.get("name", "") for case in suite.iter("testcase")]
    assert names[:3] == ["replay", "attempt 1: blocking launches", "attempt 2: blocking launches"]
    assert float(suite.get("time", "0")) > 0
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "What ran:" in text
    for path in outputs:
        assert str(path) in text
    facts = json.loads((tmp_path / "r.sarif").read_bytes())["runs"][0]["results"][0]["properties"]
    assert facts["replayVerdict"] == replay["verdict"]
    assert facts["replayAttempts"] == len(outputs)


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Reports of a log whose private lines stand right before the error, so that the appendix quotes them."""
    folder = tmp_path_factory.mktemp("private")
    found: dict[str, bytes] = {}
    lines = list(PRIVATE.values())
    for at in range(0, len(lines), 6):  # the appendix quotes eight lines before the fault
        text = "\n".join(
            [*lines[at : at + 6], "Traceback (most recent call last):", PROGRAM.split("raise ")[1]]
        )
        text = text.replace('("', ": ").replace('")', "")
        log = folder / f"{at}.log"
        log.write_text(text, encoding="utf-8")
        reports = [part for ending in ENDINGS for part in ("--report", f"{at}.{ending}")]
        done = run(folder, log.name, "--redact", *reports)
        assert done.returncode == 0, done.stderr
        found |= {f"{at}.{ending}": (folder / f"{at}.{ending}").read_bytes() for ending in ENDINGS}
    return found


@pytest.mark.parametrize("secret", PRIVATE)
def test_what_is_private_is_in_no_report(secret: str, private: dict[str, bytes]) -> None:
    leaks = [name for name, data in private.items() if secret.encode() in data]
    assert leaks == []


def test_redacted_reports_still_tell_the_incident(private: dict[str, bytes]) -> None:
    assert len(private) == len(ENDINGS) * 3
    for name, data in private.items():
        if name.endswith((".md", ".html")):
            assert b"illegal memory access" in data
            assert b"-1" in data, f"{name}: no placeholder, so the private lines were not quoted"
