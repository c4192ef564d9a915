//! The rules of the tree that no lint holds: imports go down only and in no circle, files stay small, and facts
//! written in two places agree.

mod contracts;
mod conventions;
mod documents;
mod floors;
mod imports;
mod package;
mod single_source;
mod tree;
