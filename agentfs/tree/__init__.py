"""The walk of a tree, by the door and in order: ignore rules, globs and file types decide what it passes."""
