"""Judgements over flows and events: conformance of frames, ICRC, pauses."""
