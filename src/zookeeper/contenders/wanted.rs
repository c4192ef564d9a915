//! The requests of other clients to holders: lines in the data of a znode that holders read. Each line names the token
//! of its claim.
//!
//! The znode is the claim, which its holder watches for deletion anyway. If no other client may write to the claim
//! (`announced.rs`), it is the directory of the claims.

use std::time::Duration;

use crate::lock::{MAX_TEXT, Revocation};
use crate::text::one_line;

const ASKED: &str = "release-requested=";
const BROKEN: &str = "broken=";

/// So many lines are kept in one znode: in a directory, those that meant earlier holders are of no use any more.
const LINES: usize = 64;

/// The data of such a znode with what is wanted of a holder, in place of the same that was wanted of it before; `None` if
/// they are no text.
pub(crate) fn with(data: &[u8], token: i64, wanted: &Revocation) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?;
    let (key, value) = match wanted {
        Revocation::Ask { reason } => (ASKED, one_line(reason, MAX_TEXT)),
        Revocation::Break { reason, grace } => {
            let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            (BROKEN, format!("{grace} {}", one_line(reason, MAX_TEXT)))
        }
    };
    let line = format!("{key}{token:x} {value}");
    let same = format!("{key}{token:x} ");
    let others: Vec<&str> = text.lines().filter(|line| !line.starts_with(&same)).collect();
    let asked = others.iter().filter(|line| line.starts_with(ASKED)).count();
    let broken = others.iter().filter(|line| line.starts_with(BROKEN)).count();
    // Somebody waits for what is to be broken, and nobody for an answer to a request.
    let mut requests_too_many = (asked + broken + 1).saturating_sub(LINES).min(asked);
    let mut orders_too_many = (broken + 1).saturating_sub(LINES);
    let kept = others.into_iter().filter(|line| {
        let too_many = match line {
            line if line.starts_with(ASKED) => &mut requests_too_many,
            line if line.starts_with(BROKEN) => &mut orders_too_many,
            _ => return true,
        };
        let goes = *too_many > 0;
        *too_many -= usize::from(goes);
        !goes
    });
    Some((kept.chain([&*line]).collect::<Vec<_>>().join("\n") + "\n").into_bytes())
}

fn is_ours(line: &str) -> bool {
    line.starts_with(ASKED) || line.starts_with(BROKEN)
}

/// The request lines of such data, to be kept when other data are written there.
pub(crate) fn lines(data: &[u8]) -> String {
    let text = std::str::from_utf8(data).unwrap_or_default();
    text.lines().filter(|line| is_ours(line)).flat_map(|line| [line, "\n"]).collect()
}

/// The request to the holder with that token. If its hold is both asked for and broken, the break.
pub(crate) fn of(data: &[u8], token: i64) -> Option<Revocation> {
    let text = std::str::from_utf8(data).ok()?;
    let token = format!("{token:x}");
    let of = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(key)?.split_once(' '));
        Some(values.find(|(of, _)| *of == token)?.1)
    };
    let broken = of(BROKEN).and_then(|value| value.split_once(' ')).and_then(|(grace, reason)| {
        let grace = Duration::from_millis(grace.parse().ok()?);
        Some(Revocation::Break { reason: one_line(reason, MAX_TEXT), grace })
    });
    broken
        .or_else(|| of(ASKED).map(|reason| Revocation::Ask { reason: one_line(reason, MAX_TEXT) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(reason: &str) -> Revocation {
        Revocation::Ask { reason: reason.to_owned() }
    }

    #[test]
    fn what_is_wanted_of_a_holder_leaves_the_rest_as_it_is() {
        let claim = b"zklock/1 of somebody\nlabel=job\n";
        let asked = with(claim, 0x2a, &ask("please\nnow")).unwrap();
        assert!(asked.starts_with(claim));
        assert_eq!(of(claim, 0x2a), None);
        assert_eq!(of(&asked, 0x2a), Some(ask("please now")));
        assert_eq!(of(&asked, 0x2b), None, "of another holder's");
        assert_eq!(with(&asked, 0x2a, &ask("please\nnow")), Some(asked.clone()));
        let grace = Duration::from_millis(1500);
        let broken = Revocation::Break { reason: String::new(), grace };
        let data = with(&asked, 0x2a, &broken).unwrap();
        assert!(data.starts_with(&asked));
        assert_eq!(of(&data, 0x2a), Some(broken.clone()));
        assert_eq!(lines(&data).as_bytes(), &data[claim.len()..]);
        assert_eq!(with(b"\xff", 0x2a, &broken), None);
    }

    #[test]
    fn the_latest_holders_are_meant_where_there_were_many() {
        let mut data = b"limit=3\n".to_vec();
        for token in 1..=100 {
            data = with(&data, token, &ask("please")).unwrap();
        }
        assert!(data.starts_with(b"limit=3\n"));
        assert_eq!(lines(&data).lines().count(), LINES);
        assert_eq!((of(&data, 36), of(&data, 37)), (None, Some(ask("please"))));
    }

    #[test]
    fn requests_do_not_push_out_an_order() {
        let broken = Revocation::Break { reason: String::new(), grace: Duration::ZERO };
        let mut data = with(b"", 1, &broken).unwrap();
        for token in 2..=200 {
            data = with(&data, token, &ask("please")).unwrap();
        }
        assert_eq!(of(&data, 1), Some(broken));
        assert_eq!(lines(&data).lines().count(), LINES);
    }
}
