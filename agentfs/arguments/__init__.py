"""The kinds of values that functions take: from type hints and docstrings, and the check of arguments."""
