"""Names and values that models send because of other products, and JSON in text."""
