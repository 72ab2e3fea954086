"""Regular expressions: syntax, bounded compilation, required literals, and the search of lines."""
