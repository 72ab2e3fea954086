"""The methods of a workspace, by what they do: read, change, search, take back."""
