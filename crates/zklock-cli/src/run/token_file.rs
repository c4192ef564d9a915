//! The fencing token in a file.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

/// Replaces the file as a whole: who reads it meanwhile reads the old token or the new one.
///
/// # Errors
/// It can't be written.
pub fn write(file: &Path, token: i64) -> Result<(), Failure> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = file.with_file_name(name);
    fs::write(&new, format!("{token}\n")).and_then(|()| fs::rename(&new, file)).map_err(|error| {
        let _ = fs::remove_file(&new);
        Failure::new(format!("--token-file {}: {error}", file.display()))
    })
}
