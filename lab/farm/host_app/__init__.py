"""What the farm puts into the host: agents that have webhooks, and names as the world's resolvers would have them."""
