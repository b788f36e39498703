//! Hostile stand-in agents and helpers for tests on the real CLI.
