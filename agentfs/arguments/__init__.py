"""From a model's JSON to typed arguments: taken leniently, checked strictly. Pure."""
