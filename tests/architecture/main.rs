//! The rules of the tree, read from the source text: imports go down only and in no circle, unsafe lives in two
//! floors, files stay small, and what is written in two places says the same in both.

mod circles;
mod contracts;
mod conventions;
mod documents;
mod floors;
mod imports;
mod package;
mod rust_text;
mod single_source;
mod tree;
mod unsafe_code;
