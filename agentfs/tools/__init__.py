"""Callables as tools of a language model: specs, schemas, argument coercion and calls."""
