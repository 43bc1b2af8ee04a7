# ruff: noqa: T201, TID253  (a user's program, started by the tests)
# mypy: ignore-errors
"""A small PyTorch server loop: ``torch_steps.py BAD_STEP STEPS``; at BAD_STEP one index is out of range."""

import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 16)
        self.head = nn.Linear(16, 100)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.embedding(ids))
        return self.head(hidden)


def main() -> None:
    bad_step, steps = int(sys.argv[1]), int(sys.argv[2])
    torch.manual_seed(0)
    model = Model().eval()
    for step in range(steps):
        ids = torch.arange(8) % 100
        if step == bad_step:
            ids[3] = 100
        with torch.no_grad():
            logits = model(ids)
        print(f"step {step} logits {logits.sum().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
