# ruff: noqa: T201, TID253  (a user's program, started by the tests)
# mypy: ignore-errors
"""PyTorch programs that end in other ways: ``torch_more.py CASE``."""

import ctypes
import sys
import threading
import time

import torch
from torch import nn


@torch.library.custom_op("tests::dies", mutates_args=())
def dies(x: torch.Tensor) -> torch.Tensor:
    """The host dies inside an op."""
    ctypes.string_at(0)
    return x.clone()


@torch.library.custom_op("tests::sleeps", mutates_args=())
def sleeps(x: torch.Tensor) -> torch.Tensor:
    """An op that does not end."""
    time.sleep(600)
    return x.clone()


def handled() -> None:
    """An op that raises and a program that goes on: no failure."""
    try:
        torch.zeros(3)[torch.tensor([7])]
    except IndexError:
        print("no such row, taking the first", flush=True)
    print(torch.zeros(3).sum().item(), flush=True)


def in_thread() -> None:
    """The failing op runs in a worker thread; the main thread ends with an error code."""
    failed = []

    def work() -> None:
        try:
            nn.functional.embedding(torch.tensor([5]), torch.zeros(3, 2))
        except IndexError as error:
            failed.append(error)
            raise

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    sys.exit(1 if failed else 0)


def compiled() -> None:
    """Code compiled by Inductor before the failing op."""
    step = torch.compile(lambda x: torch.relu(x * 2 + 1).sum())
    for _ in range(3):
        print(step(torch.ones(64)).item(), flush=True)
    torch.arange(4)[torch.tensor([9])]


def serve() -> None:
    """A server that waits for work."""
    torch.ones(2).sum()
    print("serving", flush=True)
    time.sleep(600)


CASES = {
    "dies": lambda: [dies(torch.ones(2)) for _ in range(2)],
    "sleeps": lambda: sleeps(torch.ones(2) + 1),
    "handled": handled,
    "in_thread": in_thread,
    "compiled": compiled,
    "serve": serve,
    "assertion": lambda: (torch.ones(2).sum(), sys.exit("bad configuration")),
}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
