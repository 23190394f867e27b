"""What protocols share: acts made from their description, and the commands that are made of them."""
