//! Sources with bugs at many spots, each of which can be left out.

use std::collections::BTreeMap;
use std::ops::Range;

/// Sources by their paths from the checkout's root.
pub type Texts = BTreeMap<String, Text>;

/// What is put in at one place for one or more bugs.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The part of the original text that it is about; empty, if something is only put in.
    pub range: Range<usize>,
    pub shape: Shape,
    /// The numbers of the bugs, and what each puts in.
    pub bugs: Vec<(u32, String)>,
}

/// How bugs are written around the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `(if on(1) { bug } else { original })`.
    Instead,
    /// `if !on(1) { original }`.
    LeftOut,
    /// `if on(1) { return bug; }`, put in.
    Returned,
    /// ` if !on(1)`, put in: the guard of an arm.
    ArmLeftOut,
}

/// One source.
#[derive(Clone, Debug)]
pub struct Text {
    original: String,
    spots: Vec<Spot>,
}

/// Where each bug is in the text that [`Text::with`] gives.
pub type Places = Vec<(u32, Range<usize>)>;

impl Text {
    /// A text without spots.
    pub fn fixed(original: String) -> Text {
        Text { original, spots: Vec::new() }
    }

    pub fn new(original: String, spots: Vec<Spot>) -> Text {
        Text { original, spots }
    }

    /// The text with those bugs in it that are `wanted`.
    pub fn with(&self, wanted: &dyn Fn(u32) -> bool) -> (String, Places) {
        let mut puts: Vec<Put> = self.spots.iter().flat_map(|spot| spot.puts(wanted)).collect();
        puts.sort_by_key(|put| (put.at, put.order));
        let mut text = String::with_capacity(2 * self.original.len());
        let mut places = Vec::new();
        let mut done = 0;
        for put in puts {
            text.push_str(&self.original[done..put.at]);
            done = put.at;
            for (number, bug) in put.bugs {
                let start = text.len();
                text.push_str(&bug);
                places.push((number, start..text.len()));
            }
            text.push_str(put.then);
        }
        text.push_str(&self.original[done..]);
        (text, places)
    }
}

/// What is put in at one place.
struct Put {
    at: usize,
    /// At one place ends come before beginnings, inner ends first, and outer beginnings first.
    order: (bool, usize),
    bugs: Vec<(u32, String)>,
    then: &'static str,
}

impl Spot {
    fn puts(&self, wanted: &dyn Fn(u32) -> bool) -> Vec<Put> {
        let write = |shape: &dyn Fn(&str, &str) -> String| -> Vec<(u32, String)> {
            let bugs = self.bugs.iter().filter(|(number, _)| wanted(*number));
            let on = |number: u32| format!("crate::mutants::on({number})");
            bugs.map(|(number, bug)| (*number, shape(&on(*number), bug))).collect()
        };
        let (mut bugs, then, after) = match self.shape {
            Shape::Instead => {
                (write(&|on, bug| format!("if {on} {{ {bug} }} else ")), "{ ", Some(" })"))
            }
            Shape::LeftOut => (write(&|on, _| format!("if !{on} ")), "{ ", Some(" }")),
            Shape::Returned => {
                (write(&|on, bug| format!(" if {on} {{ return {bug}; }}")), "", None)
            }
            Shape::ArmLeftOut => (write(&|on, _| format!(" if !{on}")), "", None),
        };
        let Some((_, first)) = bugs.first_mut() else { return Vec::new() };
        if self.shape == Shape::Instead {
            first.insert(0, '(');
        }
        let Range { start, end } = self.range;
        let begin = Put { at: start, order: (true, usize::MAX - end), bugs, then };
        let end = after.map(|after| Put {
            at: end,
            order: (false, usize::MAX - start),
            bugs: Vec::new(),
            then: after,
        });
        [Some(begin), end].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(range: Range<usize>, shape: Shape, bugs: &[(u32, &str)]) -> Spot {
        let bugs = bugs.iter().map(|(number, bug)| (*number, (*bug).to_owned())).collect();
        Spot { range, shape, bugs }
    }

    #[test]
    fn spots_inside_of_others_stay_inside() {
        let spots = vec![
            spot(0..11, Shape::Instead, &[(1, "a < b || c")]),
            spot(0..5, Shape::Instead, &[(2, "a <= b"), (3, "a >= b")]),
        ];
        let text = Text::new("a < b && c;".to_owned(), spots);
        assert_eq!(text.with(&|_| false).0, "a < b && c;");
        let inner = text.with(&|number| number == 3);
        assert_eq!(inner.0, "(if crate::mutants::on(3) { a >= b } else { a < b }) && c;");
        let all = text.with(&|_| true).0;
        assert!(
            all.starts_with("(if crate::mutants::on(1) { a < b || c } else { (if crate"),
            "{all}"
        );
        assert!(all.contains("else if crate::mutants::on(3)"), "{all}");
    }

    #[test]
    fn each_bug_is_found_again_by_its_place() {
        let spots = vec![spot(4..4, Shape::Returned, &[(7, "1"), (8, "2")])];
        let (text, places) = Text::new("fn {x}".to_owned(), spots).with(&|_| true);
        let [(7, first), (8, second)] = &places[..] else { panic!("{places:?}") };
        assert_eq!(&text[first.clone()], " if crate::mutants::on(7) { return 1; }");
        assert_eq!(&text[second.clone()], " if crate::mutants::on(8) { return 2; }");
    }
}
