"""The foundation: texts that name tools, visible characters, lazy imports, forks, threads, calls."""
