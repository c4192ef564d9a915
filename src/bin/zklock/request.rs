//! The request to give way, as it stands in a claim's znode: one more line behind those that say whose it is.

use crate::text::one_line;

const KEY: &str = "give-way=";

/// The data of a claim with a request.
pub fn add(data: &[u8], reason: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(data);
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(KEY)).collect();
    let request = format!("{KEY}{}", one_line(reason));
    lines.push(&request);
    (lines.join("\n") + "\n").into_bytes()
}

/// Why the holder is asked to give way, if it is.
pub fn find(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    text.lines().find_map(|line| line.strip_prefix(KEY)).map(one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_leaves_the_rest_as_it_is() {
        let claim = b"zklock/1 8a7ed3a3\nhost=a\nlabel=b\n";
        assert_eq!(find(claim), None);
        let asked = add(claim, "please\nnow");
        assert!(asked.starts_with(claim));
        assert_eq!(find(&asked).as_deref(), Some("please now"));
        assert_eq!(find(&add(&asked, "")).as_deref(), Some(""));
        assert_eq!(add(&asked, "please now"), asked);
    }
}
