"""What each provider's API wants: schema rules, tool calls and replies."""
