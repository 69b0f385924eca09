"""From columns to directed flows, queue pairs and messages."""
