"""Live sessions: what programs ask for, who answers, and what is allowed without asking."""
