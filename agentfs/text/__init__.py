"""Functions on text: decode, split into lines, number, cut, diff, merge and estimate tokens."""
