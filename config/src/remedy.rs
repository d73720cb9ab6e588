//! What to do about a server that does not come up. Pure.
