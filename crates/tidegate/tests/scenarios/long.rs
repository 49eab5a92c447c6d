//! All the others, for `cargo xtask endurance`. Eight minutes.

mod naive;
mod protected;
