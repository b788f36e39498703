"""An engine with other names."""
