"""An agent over HTTP, a relay, and the process that serves."""
