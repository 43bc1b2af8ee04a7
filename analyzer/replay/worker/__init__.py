"""The child of an op replay: executes ops of a plan one by one, each journalled before its launch.

Standard library, torch and max only, on Python 3.9 or newer: it runs in the interpreter of the server, where
msgspec and polars may be missing.
"""
