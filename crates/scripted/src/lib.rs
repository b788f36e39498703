//! A scripted Gemini API on loopback.
