//! Alhena.
