"""Schedules from formulas: what a Pipeline that is called without a schedule runs under."""

from tensorlang.autoschedule.default import default_schedule

__all__ = ["default_schedule"]
