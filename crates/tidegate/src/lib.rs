//! The `tidegate` program, as a library so that its tests can call it.
//!
//! | to find | look in |
//! |---|---|
//! | what operators ask a running gateway | [`admin`] |
//! | what the command line means | [`cli`] |
//! | what each command does | [`commands`] |
//! | whether a policy can be carried out | `judge` |
//! | the gateway: from a policy to its end | [`run`] |
//! | the demonstrations | [`demo`] |

pub mod admin;
pub mod cli;
pub mod commands;
pub mod demo;
pub(crate) mod judge;
pub(crate) mod log;
pub mod run;

/// Why a command could not be carried out.
pub type Problem = Box<dyn std::error::Error>;

/// The README's example is compiled and run as a doc-test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct Readme;
