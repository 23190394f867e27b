"""How agents are reached: links, HTTP, relays, the local network, and who they are."""
