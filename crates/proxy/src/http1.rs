//! HTTP/1 as bytes (RFC 9112), for the side that asks and the side that is asked.
//!
//! | to find | look in |
//! |---|---|
//! | the lines of a head | `lines` |
//! | what of a body is still to come, and its next piece | `rest`, `chunks` |
//! | a body on its way out | `outgoing` |
//! | how much to read of it at once | `appetite` |

pub(crate) mod appetite;
pub(crate) mod chunks;
pub(crate) mod lines;
pub(crate) mod outgoing;
pub(crate) mod rest;
#[cfg(test)]
pub(crate) mod test_bodies;

/// What is wrong with a message, as a sentence for its sender.
pub(crate) type Flaw = &'static str;
