"""Functions of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.replay.worker.jobs import Ran, indices, op, run_here, tensor

MINE = """
import torch


def lookup(table, index, scale=1.0):
    return table[index] * scale


def nothing(x):
    assert x.sum() != 0


def refuses(x):
    raise ValueError("expected a tensor of shape (4,), got (2,)")


def raises(x):
    raise RuntimeError("page 9 is not mine")


OPS = {"custom::paged_lookup": lookup}
"""


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


def _run(folder: Path, call: str, **arguments: Any) -> Ran:
    file = folder / "mine.py"
    file.write_text(MINE)
    return run_here(folder, [op(call, executor="user", arguments=arguments)], user_ops=str(file))


@pytest.mark.parametrize("call", ["lookup", "custom::paged_lookup"])
def test_a_function_is_called_by_argument_names(tmp_path: Path, call: str) -> None:
    ran = _run(tmp_path, call, table=tensor(4, 3), index=indices(1, 2), scale="0.5")
    assert (ran.code, ran.first("done").outputs[0].shape) == (0, [2, 3])


def test_an_index_out_of_range_inside_it_is_a_fault(tmp_path: Path) -> None:
    ran = _run(tmp_path, "lookup", table=tensor(4, 3), index=indices(1, 7))
    assert (ran.code, ran.first("failed").error_type, ran.first("failed").why) == (1, "IndexError", None)


def test_it_may_give_nothing_and_its_own_errors_are_faults(tmp_path: Path) -> None:
    assert _run(tmp_path, "nothing", x=tensor(4)).events() == [("op", 0), ("done", 0), ("bye", None)]
    assert _run(tmp_path, "raises", x=tensor(4)).first("failed").why is None


def test_its_refusal_of_a_shape_is_no_fault(tmp_path: Path) -> None:
    assert _run(tmp_path, "refuses", x=tensor(2)).first("failed").why == "call"


def test_arguments_that_it_does_not_take_are_said(tmp_path: Path) -> None:
    places = indices(1)
    ran = _run(tmp_path, "lookup", table=tensor(4, 3), index=places, places=places)
    why = ran.first("skipped").why or ""
    assert "lookup does not take the arguments of the op" in why
    assert "places" in why


def test_a_function_that_nobody_wrote_is_skipped(tmp_path: Path) -> None:
    assert "mine.py has no other" in (_run(tmp_path, "other").first("skipped").why or "")
    ran = run_here(tmp_path, [op("other", executor="user")])
    assert ran.first("skipped").why == "without a file of functions nothing executes other"


def test_a_dotted_path_is_not_imported(tmp_path: Path) -> None:
    """A plan or a dump may be a stranger's: it names no function of any package but FlashInfer's own."""
    for path in ("torch.nn.functional.relu", "os.system", "no_such_package.decode.run"):
        ran = run_here(tmp_path, [op(path, executor="user", arguments={"arg0": tensor(2)})])
        assert ran.first("skipped").why == f"without a file of functions nothing executes {path}"


def test_a_file_that_does_not_load_is_no_fault_of_an_op(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import no_such_package\n")
    ran = run_here(tmp_path, [op("f", executor="user")], user_ops=str(file))
    assert (ran.first("failed").why, ran.first("failed").error_type) == ("call", "ModuleNotFoundError")
