"""Wisdom: what tuning found, kept for every later run."""
