"""What a person can do with a collaboration: what is offered, its form, its preview."""
