"""The walk of a tree in order, inside the root, with ignore rules, globs and file types."""
