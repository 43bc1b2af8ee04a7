# ruff: noqa: TID252  (loaded as `trace_analyze_hooks` where `analyzer` may not be installed)
"""MAX: every execution of a loaded model passes here; it is the step."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .watch import Watch

_EXECUTIONS = ("execute", "replay")  # ``replay`` runs a captured device graph


def watch_calls(api: ModuleType, watch: Watch) -> None:
    """Called once, when ``max.engine.api`` is imported."""
    model = getattr(api, "Model", None)
    if model is None:
        return
    watch.journal.write("max")
    models: dict[int, int] = {}
    for name in _EXECUTIONS:
        if hasattr(model, name):
            setattr(model, name, _watched(getattr(model, name), name, watch, models))


def _watched(original: Any, name: str, watch: Watch, models: dict[int, int]) -> Any:
    """The call with its number journalled before it, and after it once its devices are known to be sound.

    Without ``sync_calls`` nothing is synchronised here: in sync mode each launch is, and a fault is raised
    inside the call (observed.md 14, 20). ``models`` numbers the graphs by the identity of their object.
    """

    def execute(model: Any, *args: Any, **kwargs: Any) -> Any:
        watch.synchronize = lambda: synchronize(model)
        watch.uses_device = lambda: any(not device.is_host for device in model.devices)
        graph = models.setdefault(id(model), len(models))
        step = watch.enter_step()
        number = watch.begin()
        watch.journal.op(number, name, step=step, kind="call", graph=graph)
        try:
            result = original(model, *args, **kwargs)
            if watch.config.sync_calls:
                synchronize(model)
        except Exception as error:
            watch.journal.failed(number, name, error, step=step, kind="call")
            raise
        watch.journal.done(number)
        watch.finish()
        if step == watch.config.stop_after_step:
            watch.stop(f"after step {step}")
        return result

    return execute


def synchronize(model: Any) -> None:
    """Wait for the accelerators of a model."""
    for device in model.devices:
        if not device.is_host:
            device.synchronize()
