"""What happens around one call of a tool: threads, giving up, telling, its outcome and its answer."""
