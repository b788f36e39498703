//! What Alhena hands out: events, messages, outcomes.
