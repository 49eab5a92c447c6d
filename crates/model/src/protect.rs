//! Protection made of the core's limiters, as gates and manners.

use std::time::Duration;

use crate::gate::{Gate, Open};
use crate::spec::Build;

/// No gate.
#[must_use]
pub fn nothing() -> Build<dyn Gate> {
    Build(Box::new(|| Box::new(Open)))
}

/// The usual gate for callers who wait this long.
#[must_use]
pub fn gate(_patience: Duration) -> Build<dyn Gate> {
    nothing()
}
