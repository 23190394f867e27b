"""What is wrong with a run's or an initiative's files, and what keeps it from going on."""
