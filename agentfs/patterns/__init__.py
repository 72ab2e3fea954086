"""What a pattern matches: bounded, planned, compiled; files passed over unseen, lines found in the rest."""
