//! What Tidegate does, shown in a terminal.
//!
//! | to see | look in |
//! |---|---|
//! | a service that drowns, and the same behind a gateway: real sockets | [`gateway`] |
//! | what each kind of quota does, in virtual time | [`quotas`] |

pub mod gateway;
pub mod quotas;
