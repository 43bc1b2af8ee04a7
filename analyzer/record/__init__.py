"""Recording: run a server so that its next crash can be analysed, and the op log of PyTorch."""

from analyzer.record.torch_ops import torch_ops

__all__ = ["torch_ops"]
