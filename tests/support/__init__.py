"""What the tests share: a toy protocol, forked processes, terminals."""
