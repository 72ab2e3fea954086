"""The foundation: texts that name tools, visible characters, lazy imports, forks, the context of a call."""
