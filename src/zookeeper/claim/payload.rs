//! The data of a claim's znode, which describe its owner.
//!
//! The data is text: `zklock/1` and the claim's uuid on the first line, then `key=value` lines.
//! Anyone can read it with any ZooKeeper client.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::lock::{Contender, HeldSince, MAX_TEXT, with_owner};
use crate::text::in_one_line;
use crate::znode::Stat;
use crate::zookeeper::name;

const MAGIC: &str = "zklock/1 ";

pub(crate) fn write(uuid: Uuid, label: &str, token: Option<i64>) -> Vec<u8> {
    with_owner(|host, pid, thread| {
        let capacity = MAGIC.len() + OTHERS + host.len() + thread.len() + label.len();
        let mut text = String::with_capacity(capacity);
        // Writing to a string does not fail.
        let _ = write!(text, "{MAGIC}{uuid}\nhost=");
        text.extend(in_one_line(host, MAX_TEXT));
        let _ = write!(text, "\npid={pid}\nthread=");
        text.extend(in_one_line(thread, MAX_TEXT));
        text.push_str("\nlabel=");
        text.extend(in_one_line(label, MAX_TEXT));
        text.push('\n');
        if let Some(token) = token {
            let _ = writeln!(text, "token={token:x}");
        }
        text.into_bytes()
    })
}

/// Gives the data of a claim to another one of the same owner.
pub(crate) fn set_uuid(data: &mut [u8], uuid: Uuid) {
    let place = MAGIC.len()..MAGIC.len() + uuid::fmt::Hyphenated::LENGTH;
    if let Some(place) = data.get_mut(place) {
        uuid.hyphenated().encode_lower(place);
    }
}

/// How many bytes a claim's node has besides the texts.
const OTHERS: usize = 80;

fn one_line(text: &str) -> String {
    crate::text::one_line(text, MAX_TEXT)
}

/// A new uuid for a claim. Its first half is the client's, which the system gives at random: a forked process has other
/// clients. Its second half is never repeated for a client, and differs from those of other clients as random numbers do.
pub(crate) fn new_uuid(client: u64) -> Uuid {
    static MADE: AtomicU64 = AtomicU64::new(0);
    // SplitMix64, which maps no two states to one number.
    let state = MADE.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut mixed = state.wrapping_add(client);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Uuid::from_u64_pair(client, mixed ^ (mixed >> 31))
}

pub(crate) fn is_of_client(uuid: Uuid, client: u64) -> bool {
    uuid.as_u64_pair().0 == client
}

/// The uuid of a claim, if the data is one of ours.
pub(crate) fn uuid(data: &[u8]) -> Option<Uuid> {
    let text = std::str::from_utf8(data).ok()?;
    text.strip_prefix(MAGIC)?.lines().next()?.parse().ok()
}

/// The token of a claim's hold: that of the transaction that made the claim, or where it belongs to a hold that was there
/// before, what its data say.
pub(crate) fn token(path: &str, data: &[u8], stat: &Stat) -> i64 {
    if !name::has_anothers_token(name::last(path)) {
        return stat.czxid;
    }
    let text = std::str::from_utf8(data).ok().filter(|text| text.starts_with(MAGIC));
    let token = text.and_then(|text| text.lines().find_map(|line| line.strip_prefix("token=")));
    token.and_then(|token| i64::from_str_radix(token, 16).ok()).unwrap_or(stat.czxid)
}

/// Reads a claim's znode, even if another library wrote it.
pub(crate) fn read(path: String, data: &[u8], stat: &Stat) -> Contender {
    let token = token(&path, data, stat);
    let (session, since) = (stat.ephemeral_owner, created_at(stat));
    let mut contender = Contender { session, since, ..Contender::new(path, token) };
    let text = String::from_utf8_lossy(data);
    if !text.starts_with(MAGIC) {
        contender.label = one_line(&text);
        return contender;
    }
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match key {
            "host" => contender.host = one_line(value),
            "pid" => contender.pid = value.parse().unwrap_or(0),
            "thread" => contender.thread = one_line(value),
            "label" => contender.label = one_line(value),
            // A later version may know more.
            _ => {}
        }
    }
    contender
}

fn created_at(stat: &Stat) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.ctime).unwrap_or(0))
}

/// Says since when those of a queue hold who stand at these places.
pub(crate) fn date_the_holds(
    contenders: &mut [Contender],
    holding: impl Iterator<Item = usize>,
    directory: &Stat,
) {
    let last = contenders.iter().map(|contender| (contender.token, contender.since)).max();
    let Some((czxid, since)) = last else { return };
    let unchanged = directory.pzxid == czxid;
    let latest = if unchanged { since } else { SystemTime::now() };
    for at in holding {
        let holder = &mut contenders[at];
        let latest = latest.max(holder.since);
        holder.held_since = Some(HeldSince { earliest: holder.since, latest });
    }
}

pub(crate) fn date_the_only_hold(holder: &mut Contender) {
    holder.held_since = Some(HeldSince { earliest: holder.since, latest: holder.since });
}

#[cfg(all(test, not(zklock_loom)))]
#[path = "../../../tests/inside/properties/payload.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let id = Uuid::new_v4();
        let data = write(id, "billing\nnightly=run", None);
        assert_eq!(uuid(&data), Some(id));
        let (mut another, id) = (data.clone(), Uuid::new_v4());
        set_uuid(&mut another, id);
        assert_eq!(another, write(id, "billing\nnightly=run", None));
        let contender = read("/l/zl-2a-lock-0000000000".into(), &data, &Stat::default());
        assert_eq!(contender.pid, std::process::id());
        assert!(!contender.host.is_empty());
        assert_eq!(contender.label, "billing nightly=run");
        assert!(contender.thread.contains("what_is_written_is_read_again"));
    }

    #[test]
    fn no_uuid_is_repeated_for_a_client_or_shared_by_two() {
        let made = (0..1000).flat_map(|_| [1, 2].map(new_uuid));
        let halves = made.map(|uuid| uuid.as_u64_pair());
        let second_halves: std::collections::HashSet<u64> = halves
            .inspect(|(client, _)| assert!([1, 2].contains(client)))
            .map(|(_, second)| second)
            .collect();
        assert_eq!(second_halves.len(), 2000);
        assert!(is_of_client(new_uuid(7), 7));
    }

    #[test]
    fn a_claim_of_an_earlier_hold_has_the_token_of_that_if_it_is_called_so() {
        let stat = Stat { czxid: 9, ..Stat::default() };
        let data = write(Uuid::new_v4(), "token=7", Some(0x2a));
        for (name, its) in [
            ("/l/zl-2a-upgrade-__WRIT__0000000007", 0x2a),
            ("/l/zl-2a-read-00c5a1e27b9d4f36-__READ__0000000007", 0x2a),
            ("/l/zl-2a-up-__READ__0000000007", 9),
            ("/l/zl-2a-__WRIT__0000000007", 9),
        ] {
            assert_eq!(read(name.into(), &data, &stat).token, its, "{name}");
            assert_eq!(token(name, b"token=2a", &stat), 9, "of no claim of ours");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_without_a_name_has_the_kernels_number() {
        let (data, id) =
            std::thread::spawn(|| (write(Uuid::new_v4(), "", None), rustix::thread::gettid()))
                .join()
                .unwrap();
        assert_eq!(read("/l".into(), &data, &Stat::default()).thread, id.to_string());
    }

    #[test]
    fn what_others_wrote_can_be_shown_on_a_terminal() {
        let evil: String = crate::text::HARMFUL.chars().filter(|c| *c != '\n').collect();
        let ours = format!("{MAGIC}{}\nhost=h{evil}\nthread=t{evil}\nlabel=l{evil}", Uuid::nil());
        for data in [ours, evil.clone()] {
            let contender =
                read("/l/zl-2a-lock-0000000000".into(), data.as_bytes(), &Stat::default());
            for text in [contender.to_string(), contender.host, contender.thread, contender.label] {
                assert!(!text.contains(|c| evil.contains(c)), "{text:?}");
            }
        }
        let own = String::from_utf8(write(Uuid::nil(), &evil, None)).unwrap();
        assert!(!own.contains(|c| evil.contains(c)), "{own:?}");
    }

    #[test]
    fn foreign_data_is_only_a_label() {
        for data in [&b""[..], b"\xff\xfe", b"192.168.0.1", b"zklock/1 not-a-uuid", b"zklock/1"] {
            assert_eq!(uuid(data), None, "{data:?}");
        }
        let contender = read("/l/x-1-0000000000".into(), b"10.0.0.7", &Stat::default());
        assert_eq!((contender.pid, contender.label.as_str()), (0, "10.0.0.7"));
    }
}
