//! Finds, prepares, launches, follows and stops Gemini CLI.
