"""The walk of a tree, ordered and confined to the root; ignore rules, globs and types say what it skips."""
