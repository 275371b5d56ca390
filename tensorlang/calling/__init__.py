"""Calling a program: what it takes, whether arguments fit, and which Sizes they tell."""
