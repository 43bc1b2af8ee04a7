"""trace-analyze: a post-mortem analyser for GPU model servers."""

__version__ = "0.1.0"
