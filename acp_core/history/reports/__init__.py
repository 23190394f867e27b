"""What is told of a collaboration to those who were not there: one module for each form."""
