//! The `tidegate` program, as a library so that its tests can call it.
//!
//! | to find | look in |
//! |---|---|
//! | what the command line means | [`cli`] |
//! | the demonstration of quotas in virtual time | [`demo`] |

pub mod cli;
pub mod demo;

/// The README's example is compiled and run as a doc-test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct Readme;
