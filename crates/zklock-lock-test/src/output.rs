//! What goes to the terminal.

use std::fmt;
use std::io::Write;

/// Writes to stdout. Nobody is there to be told when nobody reads it.
pub fn show(text: fmt::Arguments) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// Writes a line to stderr.
pub fn say(line: fmt::Arguments) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
