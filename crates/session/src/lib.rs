//! The session store of Gemini CLI on disk.
