"""What lies between the dashboard and the terminal, the browser or the editor it is shown in."""
