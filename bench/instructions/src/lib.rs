//! Empty: everything is in `benches/`.
