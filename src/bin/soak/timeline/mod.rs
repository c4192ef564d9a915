//! A picture of a run.
use crate::evidence::Evidence;
use crate::judge::Verdict;
pub fn draw(_: &Evidence, _: &Verdict) -> String { String::new() }
