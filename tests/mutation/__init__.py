"""Mutation testing: guards are changed one at a time, and the tests must notice."""
