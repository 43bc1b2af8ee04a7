"""Options of the test run, and how it shares the cores of the machine."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

DEFAULT_MARKS = "not heavy"  # of addopts in pyproject.toml
EXAMPLE_DEADLINE = timedelta(seconds=5)  # 200 ms by default: too little where workers share the cores

if "PYTEST_XDIST_WORKER" in os.environ:
    # As many threads in each worker as there are cores wait for one another more than they work: Polars on
    # small logs, torch on small tensors. Both read this when they are imported; children inherit it.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background commands like this, and children inherit it: those that are to be
    # interrupted would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# On top of what Hypothesis chose itself (it has a profile for continuous integration).
settings.register_profile(
    "busy machine", settings(), deadline=EXAMPLE_DEADLINE, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--update-golden`` writes the golden files instead of comparing them; review the diff."""
    parser.addoption("--update-golden", action="store_true", help="write golden.json of every sample")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """A worker a core (null: xdist counts them) for whole folders, otherwise no workers.

    Single files are done before workers have started. Golden files are written by one process. Tests
    chosen by mark share a GPU, or measure the time and the memory of the machine.
    """
    folders = all(Path(argument).is_dir() for argument in config.args)
    if folders and config.option.markexpr == DEFAULT_MARKS and not config.getoption("--update-golden"):
        return None
    return 0


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written."""
    return bool(request.config.getoption("--update-golden"))
