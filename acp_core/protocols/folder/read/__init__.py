"""From a collaboration's folder to data: detection, incremental reading of the log and documents."""
