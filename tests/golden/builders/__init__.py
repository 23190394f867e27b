"""Makes collaborations as files, by hand or with `acp`; imports nothing of what is tested."""
