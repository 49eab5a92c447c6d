//! What must hold for every sequence of moments and costs, for the limiters that keep one due number.

mod alike;
mod draw;
mod envelope;
mod kept;
mod promise;
mod steps;
