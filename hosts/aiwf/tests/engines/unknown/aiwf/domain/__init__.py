"""An engine of the future."""
