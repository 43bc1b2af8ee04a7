"""One root of errors, with the exit code on the class and the hint in the text."""

from __future__ import annotations


class AnalyzerError(Exception):
    """An error that the command line reports and turns into an exit code."""

    exit_code = 70  # a bug of ours, unless a subclass says otherwise


class UsageError(AnalyzerError):
    """The call makes no sense (unknown window, option without a value)."""

    exit_code = 2


class InputError(AnalyzerError):
    """An input is missing, empty, unreadable or not text."""

    exit_code = 3


class StrictLossError(AnalyzerError):
    """``--strict``: a text passed a gate but no grammar read it."""

    exit_code = 4


class ReplaySetupError(AnalyzerError):
    """A replay could not be set up."""

    exit_code = 5


class OutputError(AnalyzerError):
    """What was found cannot be written."""

    exit_code = 74  # EX_IOERR of sysexits.h
