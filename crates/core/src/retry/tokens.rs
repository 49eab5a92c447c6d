//! gRPC's rule for when to stop retrying: tokens.
//!
//! A counter starts full. A failed attempt takes one token, a successful one gives back `ratio` of a
//! token, and retries and hedges are allowed only while more than half of the tokens are left. Nothing is
//! ever waited for, and no time is involved: the rule compares failures with successes.
//!
//! 10 tokens, ratio 0.1:
//!
//! | what happens  | tokens | retries |
//! |---------------|--------|---------|
//! | five failures | 5      | off     |
//! | one success   | 5.1    | on      |
//!
//! Tokens are whole thousandths, as many decimals as the specification keeps. Source: gRPC proposal A6.

use crate::sync::{AtomicU64, Ordering};
use crate::units::Invalid;

const ONE: u64 = 1_000;

/// How many tokens there are, and how much a success gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRule {
    most: u64,
    ratio: u64,
}

impl TokenRule {
    /// At most `tokens`, from 1 to 1000; a success gives back 0.1 of a token.
    ///
    /// # Errors
    /// When there would be none, or more than 1000.
    pub fn new(tokens: u32) -> Result<Self, Invalid> {
        if tokens == 0 || tokens > 1_000 {
            return Err(Invalid::new("max_tokens", tokens, "from 1 to 1000"));
        }
        Ok(Self { most: u64::from(tokens) * ONE, ratio: ONE / 10 })
    }

    /// The same; a success gives back so many thousandths of a token.
    ///
    /// # Errors
    /// When it would give nothing back.
    pub fn with_thousandths_per_success(self, thousandths: u32) -> Result<Self, Invalid> {
        if thousandths == 0 {
            return Err(Invalid::new("token_ratio", thousandths, "at least a thousandth"));
        }
        Ok(Self { ratio: thousandths.into(), ..self })
    }
}

/// The tokens of one server name, shared by threads.
///
/// ```
/// use tidegate_core::retry::{RetryTokens, TokenRule};
///
/// let tokens = RetryTokens::new(TokenRule::new(10)?);
/// (0..5).for_each(|_| tokens.failed());
/// assert!(!tokens.may_retry());
/// tokens.succeeded();
/// assert!(tokens.may_retry());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct RetryTokens {
    rule: TokenRule,
    /// In thousandths. Relaxed throughout: the count guards itself and publishes nothing else.
    tokens: AtomicU64,
}

impl RetryTokens {
    /// All tokens there are.
    #[must_use]
    pub fn new(rule: TokenRule) -> Self {
        Self { rule, tokens: AtomicU64::new(rule.most) }
    }

    /// An attempt failed in a way that may be retried, or was answered with a pushback that forbids it.
    pub fn failed(&self) {
        self.update(|tokens| tokens.saturating_sub(ONE));
    }

    /// An attempt succeeded.
    pub fn succeeded(&self) {
        self.update(|tokens| (tokens + self.rule.ratio).min(self.rule.most));
    }

    /// Whether a retry or hedge may be made now.
    pub fn may_retry(&self) -> bool {
        self.thousandths() > self.rule.most / 2
    }

    /// How many thousandths of a token are left.
    pub fn thousandths(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    fn update(&self, change: impl Fn(u64) -> u64) {
        let mut tokens = self.thousandths();
        loop {
            let new = change(tokens);
            // Full, or empty: nothing to write, so no cache line moves.
            if new == tokens {
                return;
            }
            match self.tokens.compare_exchange_weak(tokens, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => tokens = found,
            }
        }
    }
}
