//! How a member of an ensemble introduces itself when it connects to another one for an election.
//!
//! It says which port it listens on for elections itself. Of two members only the one with the larger number may keep
//! a connection: it closes the other's, and connects to the address it was given there, which is the member's own and
//! not the proxy in front of it. The introduction of ZooKeeper 3.4, which later ones understand, is the bare number:
//! then the address is the one in `zoo.cfg`, where the proxy stands.

/// The beginning of such a stream without the sender's address, `None` when more bytes are needed.
pub(super) fn without_address(bytes: &[u8]) -> Option<Vec<u8>> {
    let number_or_version = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    // Versions are negative, numbers are not.
    if number_or_version >= 0 {
        return Some(bytes.to_vec());
    }
    let number = bytes.get(8..16)?;
    let length = i32::from_be_bytes(bytes.get(16..20)?.try_into().ok()?);
    let rest = bytes.get(20 + usize::try_from(length).unwrap_or(0)..)?;
    Some([number, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_introduction_loses_its_address_once_it_has_come_whole() {
        let number = 3_i64.to_be_bytes();
        let address = b"127.0.0.1:3888";
        let length = (address.len() as i32).to_be_bytes();
        let whole = [&(-65536_i64).to_be_bytes()[..], &number, &length, address].concat();
        for end in 0..whole.len() {
            assert_eq!(without_address(&whole[..end]), None);
        }
        assert_eq!(without_address(&whole).unwrap(), number);
        let more = [&whole[..], b"vote"].concat();
        assert_eq!(without_address(&more).unwrap(), [&number[..], b"vote"].concat());
    }

    #[test]
    fn an_introduction_that_has_no_address_stays_as_it_is() {
        let bytes = [&3_i64.to_be_bytes()[..], b"vote"].concat();
        assert_eq!(without_address(&bytes).unwrap(), bytes);
    }
}
