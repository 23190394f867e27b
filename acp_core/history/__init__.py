"""What happened: recording, replay, metrics, reports."""
