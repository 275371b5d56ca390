"""Gradients: reverse mode on definitions.  See gradients.py, and docs/design.md."""

from tensorlang.autodiff.gradients import gradients

__all__ = ["gradients"]
