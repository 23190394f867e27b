"""From a run's folder to data: detection, scanning, hints at conflicts."""
