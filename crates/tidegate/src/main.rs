//! The Tidegate binary.
fn main() {}
