"""Python imports this at start because its folder is on ``PYTHONPATH`` (set by ``analyzer.replay.program``).

It takes its folder off ``sys.path`` again (no module of the program may be shadowed), starts the hook if the
configuration is in the environment, and then runs the ``sitecustomize`` that it stands in front of.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

_HERE = str(Path(__file__).resolve().parent)


def _start_hook() -> None:
    name = "trace_analyze_hooks"
    path = Path(_HERE) / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[_HERE])
    if spec is None or spec.loader is None:
        return
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{name}.start").start()


def _chain() -> None:
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if not entry or str(Path(entry).resolve()) != _HERE]
_start_hook()
_chain()
