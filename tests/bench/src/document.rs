//! docs/performance.md: its tables stand between markers, its pictures in docs/performance/.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::Trouble;
use crate::figures::{Answer, Report};
use crate::{picture, table};

/// The part of the document that is about one server, or about an ensemble.
pub struct Document {
    part: &'static str,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn file() -> PathBuf {
    docs().join("performance.md")
}

/// For `map_err`.
fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Trouble {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

impl Document {
    pub fn of(ensemble: bool) -> Document {
        Document { part: if ensemble { "ensemble" } else { "server" } }
    }

    /// The ratios that stand there; none if there is no such document.
    pub fn ratios(&self) -> Vec<(String, f64)> {
        let text = std::fs::read_to_string(file()).unwrap_or_default();
        self.split(&text).map(|(_, own, _)| ratios(own)).unwrap_or_default()
    }

    /// What is before its part, within, and after.
    fn split<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
        let (begin, end) = (self.marker("begin"), self.marker("end"));
        let from = text.find(&begin)? + begin.len();
        let until = from + text[from..].find(&end)?;
        Some((&text[..from], &text[from..until], &text[until..]))
    }

    fn marker(&self, which: &str) -> String {
        format!("<!-- bench: {} {which} -->", self.part)
    }

    /// Replaces its part, and its pictures.
    pub fn write(&self, report: &Report) -> Result<(), Trouble> {
        let path = file();
        let text = std::fs::read_to_string(&path).map_err(at(&path))?;
        let Some((before, _, after)) = self.split(&text) else {
            return Err(format!("{}: no line {}", path.display(), self.marker("begin")));
        };
        self.write_pictures(report, &docs().join("performance"))?;
        let new = format!("{before}\n{}{after}", self.body(report));
        std::fs::write(&path, new).map_err(at(&path))
    }

    pub fn write_pictures(&self, report: &Report, directory: &Path) -> Result<(), Trouble> {
        std::fs::create_dir_all(directory).map_err(at(directory))?;
        for answer in &report.answers {
            let path = directory.join(self.picture(answer));
            std::fs::write(&path, picture::draw(answer)).map_err(at(&path))?;
        }
        Ok(())
    }

    fn picture(&self, answer: &Answer) -> String {
        format!("{}-{}.svg", self.part, answer.question.key.name())
    }

    fn body(&self, report: &Report) -> String {
        let mut body = format!("{}\n\n{}", table::head(report), table::of_ratios(&report.ratios));
        for answer in &report.answers {
            let (title, picture) = (answer.question.title, self.picture(answer));
            let _ = write!(
                body,
                "\n### {title}\n\n![{title}](performance/{picture})\n\n{}",
                table::of(answer)
            );
        }
        body
    }
}

/// The rows of a table that say which is better, more or less.
fn ratios(text: &str) -> Vec<(String, f64)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, measured, "more" | "less"] = cells[..] else {
            return None;
        };
        Some((name.to_owned(), measured.split(' ').next()?.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;
    use crate::ratios::{Better, Ratio};

    #[test]
    fn ratios_are_read_as_they_are_written() {
        let figure = Figure { median: 2.25, least: 2.0, most: 3.0 };
        let name = "hand-offs/s of 2 waiters / best peer".to_owned();
        let written =
            table::of_ratios(&[Ratio { name: name.clone(), figure, better: Better::More }]);
        assert_eq!(ratios(&written), [(name, 2.25)]);
    }

    #[test]
    fn a_part_lies_between_its_markers() {
        let text = "a\n<!-- bench: server begin -->\nb\n<!-- bench: server end -->\nc";
        let parts = Document::of(false).split(text);
        assert_eq!(parts.map(|(_, own, _)| own), Some("\nb\n"));
        assert_eq!(Document::of(true).split(text), None);
    }

    #[test]
    fn the_document_has_both_parts() {
        let text = std::fs::read_to_string(file()).unwrap();
        for ensemble in [false, true] {
            assert!(Document::of(ensemble).split(&text).is_some());
        }
    }
}
