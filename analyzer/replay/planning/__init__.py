"""From the suspicious window to the plan of an op replay."""

from analyzer.replay.planning.build import build_plan, with_user_ops

__all__ = ["build_plan", "with_user_ops"]
