"""From a callable to a tool: what its hints and its docstring tell of it. Pure."""
