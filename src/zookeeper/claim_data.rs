//! What a claim's node says of its owner.
//!
//! The data is text: `zklock/1` and the claim's uuid on the first line, then `key=value` lines.
//! Anyone can read it with any ZooKeeper client.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::lock::{Contender, HeldSince, MAX_TEXT, Revocation, with_owner};
use crate::text::in_one_line;
use crate::znode::Stat;

const MAGIC: &str = "zklock/1 ";
/// The lines that somebody else writes, with the token of the claim that is meant.
const ASKED: &str = "release-requested=";
const BROKEN: &str = "broken=";

/// What to write into a claim's node.
pub(super) fn write(uuid: Uuid, label: &str) -> Vec<u8> {
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
        text.into_bytes()
    })
}

/// How many bytes a claim's node has besides the texts.
const OTHERS: usize = 80;

fn one_line(text: &str) -> String {
    crate::text::one_line(text, MAX_TEXT)
}

/// A new uuid for a claim: its first half is the client's.
pub(super) fn new_uuid(client: u64) -> Uuid {
    Uuid::from_u64_pair(client, Uuid::new_v4().as_u64_pair().1)
}

/// Whether the claim's uuid was made by that client.
pub(super) fn is_of_client(uuid: Uuid, client: u64) -> bool {
    uuid.as_u64_pair().0 == client
}

/// The uuid of a claim, if the data is one of ours.
pub(super) fn uuid(data: &[u8]) -> Option<Uuid> {
    let text = std::str::from_utf8(data).ok()?;
    text.strip_prefix(MAGIC)?.lines().next()?.parse().ok()
}

/// Reads a claim's node, whoever wrote it.
pub(super) fn read(path: String, data: &[u8], stat: &Stat) -> Contender {
    let mut contender = Contender {
        path,
        session: stat.ephemeral_owner,
        token: stat.czxid,
        since: created_at(stat),
        held_since: None,
        host: String::new(),
        pid: 0,
        thread: String::new(),
        label: String::new(),
    };
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

/// What somebody wants of the claim's holder: the data of its znode with that, `None` of another library's claim. The
/// claim is named by its token, as a lock's path may be another's by the time that it is written.
pub(super) fn with_revocation(data: &[u8], token: i64, revocation: &Revocation) -> Option<Vec<u8>> {
    uuid(data)?;
    let text = std::str::from_utf8(data).ok()?;
    let (key, line) = match revocation {
        Revocation::Ask { reason } => (ASKED, format!("{ASKED}{token:x} {}", one_line(reason))),
        Revocation::Break { reason, grace } => {
            (BROKEN, format!("{BROKEN}{token:x} {} {}", grace.as_millis(), one_line(reason)))
        }
    };
    let others = text.lines().filter(|line| !line.starts_with(key));
    Some((others.chain([&*line]).collect::<Vec<_>>().join("\n") + "\n").into_bytes())
}

/// What is wanted of the claim's holder: where both are there, that it is broken.
pub(super) fn revocation(data: &[u8], token: i64) -> Option<Revocation> {
    let text = std::str::from_utf8(data).ok()?;
    let token = format!("{token:x}");
    let of = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(key)?.split_once(' '));
        Some(values.find(|(of, _)| *of == token)?.1)
    };
    let broken = of(BROKEN).and_then(|value| value.split_once(' ')).and_then(|(grace, reason)| {
        let grace = Duration::from_millis(grace.parse().ok()?);
        Some(Revocation::Break { reason: one_line(reason), grace })
    });
    broken.or_else(|| of(ASKED).map(|reason| Revocation::Ask { reason: one_line(reason) }))
}

fn created_at(stat: &Stat) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.ctime).unwrap_or(0))
}

/// Says since when the first of a queue hold, so many of them.
pub(super) fn date_the_holds(contenders: &mut [Contender], holding: usize, directory: &Stat) {
    let last = contenders.iter().map(|contender| (contender.token, contender.since)).max();
    let Some((czxid, since)) = last else { return };
    let unchanged = directory.pzxid == czxid;
    let latest = if unchanged { since } else { SystemTime::now() };
    for holder in contenders.iter_mut().take(holding) {
        let latest = latest.max(holder.since);
        holder.held_since = Some(HeldSince { earliest: holder.since, latest });
    }
}

/// Says since when the only one holds.
pub(super) fn date_the_only_hold(holder: &mut Contender) {
    holder.held_since = Some(HeldSince { earliest: holder.since, latest: holder.since });
}

#[cfg(all(test, not(zklock_loom)))]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let id = Uuid::new_v4();
        let data = write(id, "billing\nnightly=run");
        assert_eq!(uuid(&data), Some(id));
        let contender = read("/l/zl-2a-lock-0000000000".into(), &data, &Stat::default());
        assert_eq!(contender.pid, std::process::id());
        assert!(!contender.host.is_empty());
        assert_eq!(contender.label, "billing nightly=run");
        assert!(contender.thread.contains("what_is_written_is_read_again"));
    }

    #[test]
    fn what_is_wanted_of_a_holder_leaves_the_rest_as_it_is() {
        let claim = write(Uuid::new_v4(), "job");
        let ask = |reason: &str| Revocation::Ask { reason: reason.to_owned() };
        let asked = with_revocation(&claim, 0x2a, &ask("please\nnow")).unwrap();
        assert!(asked.starts_with(&claim));
        assert_eq!(revocation(&claim, 0x2a), None);
        assert_eq!(revocation(&asked, 0x2a), Some(ask("please now")));
        assert_eq!(revocation(&asked, 0x2b), None, "of another holder's");
        assert_eq!(with_revocation(&asked, 0x2a, &ask("please\nnow")), Some(asked.clone()));
        let grace = Duration::from_millis(1500);
        let broken = Revocation::Break { reason: String::new(), grace };
        let data = with_revocation(&asked, 0x2a, &broken).unwrap();
        assert!(data.starts_with(&asked));
        assert_eq!(revocation(&data, 0x2a), Some(broken.clone()));
        assert_eq!(with_revocation(b"another library's", 0x2a, &broken), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_without_a_name_has_the_kernels_number() {
        let (data, id) =
            std::thread::spawn(|| (write(Uuid::new_v4(), ""), rustix::thread::gettid()))
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
        let own = String::from_utf8(write(Uuid::nil(), &evil)).unwrap();
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
