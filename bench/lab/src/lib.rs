//! What the comparisons have in common.
//!
//! | module | is |
//! |---|---|
//! | [`comparison`] | a comparison as a program, from its command line to its status |
//! | [`cores`] | who runs where |
//! | [`process`], [`programs`] | the programs we compare with, started and measured from outside |
//! | [`http`] | a client for their first answers and for few requests |
//! | [`machine`] | how quiet the machine was |
//! | [`patience`] | turns that a hypervisor disturbed, taken again |
//! | [`figures`] | what is left of many rounds |
//! | [`bar`], [`table`] | what was promised, and how everything is shown |

pub mod bar;
pub mod comparison;
pub mod cores;
pub mod figures;
pub mod http;
pub mod machine;
pub mod patience;
pub mod process;
pub mod programs;
pub mod table;
