"""What runs inside a replayed program.

Standard library only, and no import of ``analyzer``: the program may have an environment of its own in which
this project is not installed. ``sitecustomize.py`` loads this folder as the package ``trace_analyze_hooks``.
"""
