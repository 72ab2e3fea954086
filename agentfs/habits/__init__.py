"""What models send because of other products: names of tools and parameters, values, JSON in text."""
