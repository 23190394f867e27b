"""What makes collaborations for the goldens: by commands, or by files of its own."""
