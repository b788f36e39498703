"""An engine without a factory that the adapter knows."""

OWN = "own"
