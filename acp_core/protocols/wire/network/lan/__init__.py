"""Finding agents on the local network (core specification, section 6.4)."""
