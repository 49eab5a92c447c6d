//! All the others, for `cargo xtask endurance`. Ten minutes, with more runs of the waves, whose outcome chance once decided.

mod naive;
mod protected;
