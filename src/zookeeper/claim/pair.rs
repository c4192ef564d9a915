//! Claims of two znodes, so that every other library's locks on the path wait for them. kazoo in its default form looks
//! for one name, all others for another.
//!
//! One transaction makes both, so their numbers are consecutive: a claim earlier than one is earlier than both. Curator
//! orders unknown names as whole strings. The second name is chosen so that Curator puts it behind all claims. Both
//! have the same data and the same czxid.

use super::lookup;
use crate::client::{Created, Op, OpResult, TrustedSession};
use crate::error::{Code, Error};
use crate::runtime::Pending;
use crate::zookeeper::name;

const SECOND: &str = "_zl-";
const KAZOO: &str = "-__lock__";

/// The name of the second znode, before the server appends the number.
pub(crate) fn second_prefix(directory: i64) -> String {
    format!("{SECOND}{directory:x}{KAZOO}")
}

pub(crate) fn is_second(name: &str) -> bool {
    name.starts_with(SECOND)
}

/// The name of the second znode, by that of the first. `None` where numbers may not follow each other.
pub(crate) fn second_of(first: &str) -> Option<String> {
    let (directory, _) = first.strip_prefix("zl-")?.split_once("-lock-")?;
    let number = name::number_in_turn(first)?;
    Some(name::numbered_name(&format!("{SECOND}{directory}{KAZOO}"), number + 1))
}

/// The name of the first znode, by that of the second.
pub(crate) fn first_of(second: &str) -> Option<String> {
    let (directory, _) = second.strip_prefix(SECOND)?.split_once(KAZOO)?;
    let number = name::sequence(second)?.wrapping_sub(1);
    let prefix = format!("zl-{directory}-lock-");
    (!name::is_out_of_turn(number)).then(|| name::numbered_name(&prefix, number))
}

pub(crate) fn second_path(first: &str) -> Option<String> {
    let (directory, first) = first.rsplit_once('/')?;
    Some(format!("{directory}/{}", second_of(first)?))
}

/// Submits the transaction that makes both. The result is the first; the second's name follows from it, or the outcome
/// is given as unknown and both are to be looked up.
pub(crate) fn create(
    session: &TrustedSession,
    first: Op,
    second: Op,
    data: Vec<u8>,
) -> Pending<Created> {
    let path = first.path().to_owned();
    let sent = session.multi(&[first, second]);
    let (session, prefix) = (session.clone(), path.clone());
    Pending::run("create", &path, async move {
        // A permission, say, is missing for a create.
        let refused = |error: Error| Error::new("create", error.path(), error.code());
        let made = sent.await.map_err(refused)?;
        if let [OpResult::Created(first), OpResult::Created(second)] = &made[..] {
            if second_path(first).as_ref() == Some(second) {
                let stat = lookup::read_created(&session, &[first, second], &data).await?;
                return Ok(Created { path: first.clone(), stat });
            }
        }
        Err(Error::new("create", &prefix, Code::OPERATION_TIMEOUT))
    })
}

/// A claim's znodes that a look-up has found, each with its czxid: those of the claim, and others that are to be
/// deleted, as half a claim keeps out only half of the libraries.
pub(crate) type Found<P> = (Option<(P, P, i64)>, Vec<(P, i64)>);

pub(crate) fn complete<P: AsRef<str>>(found: Vec<(P, i64)>) -> Found<P> {
    let is_second = |(path, _): &(P, i64)| is_second(name::last(path.as_ref()));
    let (mut seconds, mut firsts) = found.into_iter().partition::<Vec<_>, _>(is_second);
    let pair = firsts.iter().enumerate().find_map(|(at, (_, czxid))| {
        Some((at, seconds.iter().position(|(_, of_second)| of_second == czxid)?))
    });
    let pair = pair.map(|(first, second)| {
        let ((first, czxid), (second, _)) = (firsts.remove(first), seconds.remove(second));
        (first, second, czxid)
    });
    firsts.append(&mut seconds);
    (pair, firsts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_the_two_names_follows_from_the_other() {
        for (first, second) in [
            ("zl-2a-lock-0000000007", "_zl-2a-__lock__0000000008"),
            ("zl-2a-lock--000000001", "_zl-2a-__lock__0000000000"),
            ("zl-2a-lock--000000003", "_zl-2a-__lock__-000000002"),
            ("zl-2a-lock-2147483646", "_zl-2a-__lock__2147483647"),
        ] {
            assert_eq!(second_of(first).as_deref(), Some(second));
            assert_eq!(first_of(second).as_deref(), Some(first));
            let path = second_path(&format!("/locks/a/{first}"));
            assert_eq!(path, Some(format!("/locks/a/{second}")));
        }
        for (first, second) in [
            ("zl-2a-lock-2147483647", "_zl-2a-__lock__-2147483648"),
            ("zl-2a-__READ__0000000007", "0123456789abcdef0123456789abcdef__lock__0000000008"),
            ("x-0100002e67c5e000-0000000007", "_zl-2a-lock-0000000008"),
        ] {
            assert_eq!((second_of(first), first_of(second)), (None, None), "{first} {second}");
        }
    }

    #[test]
    fn only_two_znodes_of_one_transaction_are_a_claim() {
        let (first, second) = ("/l/zl-2a-lock-0000000007", "/l/_zl-2a-__lock__0000000008");
        assert_eq!(complete(vec![(second, 9), (first, 9)]), (Some((first, second, 9)), vec![]));
        assert_eq!(complete(vec![(second, 9), (first, 8)]), (None, vec![(first, 8), (second, 9)]));
        assert_eq!(complete(vec![(second, 9)]), (None, vec![(second, 9)]));
        let (early, late) = ((first, 8), (second, 7));
        let found = complete(vec![early, late, (first, 9), (second, 9)]);
        assert_eq!(found, (Some((first, second, 9)), vec![early, late]));
    }
}
