//! Text that others wrote, as it can be shown to people.

/// One line of at most `most` characters that does to a terminal, or to the text around it, nothing
/// but stand there. Control characters, line separators and what turns the direction of writing
/// become spaces, as does all that [`str::escape_debug`] would not print as it is.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    in_one_line(text, most).collect()
}

/// As [`one_line`], character by character.
pub(crate) fn in_one_line(text: &str, most: usize) -> impl Iterator<Item = char> {
    text.chars().take(most).map(|c| if is_plain(c) { c } else { ' ' })
}

fn is_plain(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Behind a letter, because a mark that combines with the one before it is plain there.
    let behind_a_letter = String::from_iter(['a', c]);
    behind_a_letter.escape_debug().eq(behind_a_letter.chars())
}

/// Whatever moves a cursor, ends a line or turns the direction.
#[cfg(test)]
pub(crate) const HARMFUL: &str = "\0\t\n\r\x1b\x7f\u{80}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\
    \u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\
    \u{feff}\u{e0001}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_ends_a_line_becomes_a_space() {
        for c in HARMFUL.chars() {
            assert_eq!(one_line(&format!("a{c}b"), 9), "a b", "{c:?}");
        }
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in ["it's \"C:\\x\"", "Zürich", "हिन्दी", "שלום", "日本語", "e\u{301}", "🚀"]
        {
            assert_eq!(one_line(text, 99), text);
        }
        assert_eq!(one_line("Zürich", 2), "Zü");
    }
}
