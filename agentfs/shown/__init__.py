"""The read history of a workspace, and the full texts of results that it has shortened."""
