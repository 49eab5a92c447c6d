//! The one meaning of a policy file: what an operator wrote, what it compiles to, and the gate that
//! decides with it.
//!
//! ```text
//! text ──read──> document ──compile──> Policy ──> Gate ──decide──> Decision
//!        all problems at once, each with its line
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | the compiled form: rules, routes, matchers | [`policy`] |
//! | what is wrong with a file, and what to do | [`problem`] |
//! | what can be written: every key | [`document`] |
//! | how it is spelt, and where things stand in the text | [`text`] |
//! | numbers with units | [`quantity`] |
//! | schema, reference and defaults, all from the declared keys | [`schema()`], [`mod@reference`], [`effective()`] |
//! | the facts about a request that rules may look at | [`attributes`] |
//! | the one spelling of a path | [`path`] |
//!
//! Nothing here reads a file, a clock or the environment. Drivers bring the text, the moment and the roll.

pub mod attributes;
mod compile;
pub mod decision;
pub mod document;
mod effective;
mod escape;
pub mod explain;
mod flags;
pub mod gate;
mod identity;
mod loss;
pub mod path;
pub mod policy;
pub mod problem;
mod purpose;
pub mod quantity;
mod read;
pub mod record;
pub mod reference;
mod schema;
pub mod text;

pub use attributes::{Attributes, Field, Headers};
pub use decision::{Admitted, By, Cause, Decision, DecisionId, ReasonWord, Refused, Standing, Standings};
pub use effective::{effective, effective_json};
pub use escape::{Escaped, escaped, escaped_json, is_hidden};
pub use explain::Explanation;
pub use flags::from_flags;
pub use gate::{Gate, Now, Readings, Shedding, SignalReading, Turned, UpstreamReadings, Who};
pub use identity::{LONGEST_IDENTITY, identity_fault};
pub use loss::lost;
pub use policy::Policy;
pub use problem::{Code, Problem, Severity};
pub use purpose::{Purpose, beyond_library, listener_path, locate};
pub use read::{Reading, callers_file, read};
pub use record::Record;
pub use schema::schema;
pub use text::{Format, Source};
