"""The terminal half of acp: draws Snapshots and offers Actions; knows no protocol by name."""
