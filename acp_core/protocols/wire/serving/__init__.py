"""An agent over HTTP and on the local network, a relay, and the process that serves."""
