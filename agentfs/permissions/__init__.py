"""What may be done: the question, its answers and rules, and the gate before every method."""
