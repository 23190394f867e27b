"""A participant's turns: wait, prompt, run, check that the event appeared."""
