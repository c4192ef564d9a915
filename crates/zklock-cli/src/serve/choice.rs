//! The part of the page to show, from the query of its address.

/// The spans of the timeline in minutes. The first is the default.
pub const SPANS: [u32; 4] = [15, 5, 60, 240];

/// The part of the page to show.
pub struct Choice {
    /// The span of the timeline.
    pub minutes: u32,
    /// Shows only locks whose path contains this.
    pub filter: String,
}

impl Choice {
    pub fn of(query: &str) -> Choice {
        let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key));
        let minutes = value("minutes=").and_then(|minutes| minutes.parse().ok());
        Choice {
            minutes: minutes.filter(|minutes| SPANS.contains(minutes)).unwrap_or(SPANS[0]),
            filter: value("filter=").map(decoded).unwrap_or_default(),
        }
    }

    pub fn has(&self, path: &str) -> bool {
        path.contains(&self.filter)
    }
}

/// The address of the page with one choice.
pub fn link(minutes: u32, filter: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let encode = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let filter: String = filter.bytes().map(encode).collect();
    format!("?minutes={minutes}&filter={filter}")
}

fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let digits = || -> Option<u8> {
            let mut after = bytes.clone();
            let digits = [after.next()?, after.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        };
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match digits() {
                Some(byte) => {
                    bytes.nth(1);
                    byte
                }
                None => b'%',
            },
            other => other,
        });
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_path_that_it_was_made_of() {
        for path in ["/locks/a", "/a b/%41+&filter=c#d?", "/lücke/\"<>"] {
            let link = link(5, path);
            let choice = Choice::of(link.split_once('?').expect("a query").1);
            assert_eq!((choice.minutes, choice.filter.as_str()), (5, path), "{link}");
        }
        let cut_off = Choice::of("filter=%4&minutes=7");
        assert_eq!((cut_off.minutes, cut_off.filter.as_str()), (SPANS[0], "%4"));
    }
}
