//! The hosts' contracts as pure views over the model.
