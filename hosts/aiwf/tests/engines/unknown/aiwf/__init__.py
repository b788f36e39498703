"""An engine of the future: no name is where it was."""
