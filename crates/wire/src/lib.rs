//! What Gemini CLI writes, exactly.
