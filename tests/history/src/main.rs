//! `history check FILE` checks a history of lock operations, and says what it finds.

use std::io::Write as _;
use std::process::ExitCode;

const FOUND_A_VIOLATION: u8 = 1;
const BAD_ARGUMENTS: u8 = 2;
const COULD_NOT: u8 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, file] = arguments.as_slice() else { return usage() };
    if command != "check" {
        return usage();
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let code = match text.and_then(|text| history::check(&text)) {
        Ok(verdict) => {
            // A reader that has gone does not change the verdict.
            let _ = writeln!(std::io::stdout(), "{verdict}");
            if verdict.violations.is_empty() { 0 } else { FOUND_A_VIOLATION }
        }
        Err(why) => {
            eprintln!("history: {file}: {why}");
            COULD_NOT
        }
    };
    ExitCode::from(code)
}

fn usage() -> ExitCode {
    eprintln!("usage: history check FILE");
    ExitCode::from(BAD_ARGUMENTS)
}
