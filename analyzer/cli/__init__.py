"""The command line: the only place that prints, writes files and exits."""

from analyzer.cli.app import main

__all__ = ["main"]
