"""The forms in which tools are handed over: schemas, plain functions, and a paragraph for the prompt."""
