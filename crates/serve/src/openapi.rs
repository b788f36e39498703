//! The document that describes the API, made from the types.
