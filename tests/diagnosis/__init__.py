"""Why a collaboration is stuck: causes, thresholds, remedies."""
