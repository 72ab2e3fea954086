"""Regular expressions: syntax, compilation within bounds, required literals, and the search of lines."""
