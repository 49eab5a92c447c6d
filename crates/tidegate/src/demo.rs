//! What Tidegate does, shown in a terminal.
//!
//! | to see | look in |
//! |---|---|
//! | ten times too much, without and with a gateway: real sockets | [`overload`] |
//! | what each kind of quota does, in virtual time | [`quotas`] |

pub mod overload;
pub mod quotas;
