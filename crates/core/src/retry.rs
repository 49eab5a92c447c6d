//! Trying again without making it worse.
//!
//! A failure that was an accident is repaired by a second attempt. A failure that was overload is made
//! worse by it: three layers that make four attempts each turn one request into 4³ = 64 at the bottom,
//! just when the bottom is down. So a retry has to pass four questions, and each is a small machine of
//! its own:
//!
//! | question | machine |
//! |---|---|
//! | May this request have another attempt, and when? | [`RetryRule`], which counts attempts and time |
//! | When exactly? | [`Backoff`]: capped, exponential, jittered |
//! | Can our traffic afford it? | [`RetryBudget`], or [`RetryTokens`] for gRPC's rule; one for retries and hedges |
//! | Do the others retry as well? | [`AttemptHistogram`], at the server that refuses: "overloaded; don't retry" |
//!
//! With a budget of 10 %, three layers make at most 1.1³ = 1.331 attempts of one request.
//!
//! Only the layer directly above the one that refused may retry. Whoever gives up passes the refusal on as
//! [`Advice::Never`], so that the layers above do not try what was tried already.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::retry::{Advice, Attempts, BudgetRule, Failure, RetryBudget, RetryRule};
//! use tidegate_core::{Moment, Roll};
//!
//! let (now, roll) = (Moment::ORIGIN, Roll::new(0.5)?);
//! let rule = RetryRule::default();
//! let budget = RetryBudget::new(BudgetRule::default(), now);
//!
//! budget.request(now);
//! let mut attempts = Attempts::begin(now);
//! // ... the first attempt fails ...
//! let wait = rule.next(&mut attempts, now, Failure::Transient(Advice::None), roll).admitted();
//! let may_retry = wait.is_some() && budget.take(now).is_admit();
//! assert!(may_retry);
//! # Ok::<(), tidegate_core::Invalid>(())
//! ```

mod attempts;
mod backoff;
mod budget;
mod histogram;
mod tokens;

pub use attempts::{Advice, Attempts, Failure, RetryRule, RetryTerms};
pub use backoff::{Backoff, Delays, Jitter};
pub use budget::{BudgetRule, BudgetTerms, RetryBudget, Spent};
pub use histogram::{AttemptHistogram, HistogramRule, HistogramTerms, Seen};
pub use tokens::{RetryTokens, TokenRule};
