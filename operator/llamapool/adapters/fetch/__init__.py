"""Bringing a model's files into place: `llamapool fetch`."""
