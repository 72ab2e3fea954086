"""Callables as tools of a language model: declarations, arguments and calls."""
