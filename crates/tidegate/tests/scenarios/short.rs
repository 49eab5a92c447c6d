//! Five scenarios that differ most, for every change: a little too much, a flood of all criticalities, waves, one greedy
//! caller, and retries that keep an overload going. Four minutes.

mod naive;
mod protected;
