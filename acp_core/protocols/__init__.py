"""The protocols that acp knows: what each implements, the list of them, and how collaborations are found."""
