"""What protocols share: actions, findings, differences, documents, and commands made from actions."""
