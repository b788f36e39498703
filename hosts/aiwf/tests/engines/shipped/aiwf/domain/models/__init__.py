"""A stand-in for the engine."""
