//! What is reported goes through JSON and comes back as it was.

use std::fmt::Debug;

use serde_json::{Value, json};
use zklock::zookeeper::{Acl, CreateMode, Permissions, SessionState, Stat, WatchEventKind};
use zklock::{Contender, GuardState, LostReason, Strategy};

/// Serialises it, and gives what was written.
fn written<T>(value: T) -> Value
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug,
{
    let written = serde_json::to_value(&value).unwrap();
    assert_eq!(serde_json::from_value::<T>(written.clone()).unwrap(), value);
    written
}

#[test]
fn states_are_written_by_their_names() {
    assert_eq!(written(GuardState::Suspended), json!("Suspended"));
    assert_eq!(written(LostReason::Deleted), json!("Deleted"));
    assert_eq!(written(SessionState::Closed), json!("Closed"));
    assert_eq!(written(Strategy::Queue), json!("Queue"));
    assert_eq!(written(WatchEventKind::ChildrenChanged), json!("ChildrenChanged"));
    assert_eq!(written(CreateMode::Ephemeral), json!("Ephemeral"));
}

#[test]
fn a_stat_is_written_by_its_fields_and_one_that_lacks_some_is_read() {
    let mut stat = Stat::default();
    (stat.czxid, stat.ephemeral_owner, stat.version) = (i64::MAX, i64::MIN, -1);
    let text = written(stat);
    assert_eq!(text["czxid"], json!(i64::MAX));
    assert_eq!(text.as_object().unwrap().len(), 11);
    assert_eq!(serde_json::from_value::<Stat>(json!({})).unwrap(), Stat::default());
    let of_a_later_version = json!({"version": 3, "what_comes_later": 1});
    assert_eq!(serde_json::from_value::<Stat>(of_a_later_version).unwrap().version, 3);
}

#[test]
fn an_access_control_list_is_written_by_the_names_of_its_permissions() {
    let acl = Acl::new(Permissions::READ | Permissions::ADMIN, "world", "anyone");
    let text = json!({"permissions": "READ | ADMIN", "scheme": "world", "id": "anyone"});
    assert_eq!(written(acl), text);
}

#[test]
fn contenders_are_written_with_all_that_is_known_of_them() {
    let store = zklock::LocalStore::new();
    let lock = store.lock("/serde").label("night run");
    let guard = lock.acquire().wait().unwrap();
    let holder: Contender = lock.holder().wait().unwrap().unwrap();
    let text = written(holder.clone());
    assert_eq!(text["token"], json!(guard.fencing_token()));
    assert_eq!(text["label"], json!("night run"));
    assert_eq!(text["pid"], json!(std::process::id()));
    let since = holder.since.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(text["since"]["secs_since_epoch"], json!(since.as_secs()));
    assert!(text["held_since"]["latest"].is_object());
}
