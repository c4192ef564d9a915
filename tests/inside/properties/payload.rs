//! What a claim's node may say, whoever wrote it.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Bytes of any kind, often with the beginnings of ours.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let ours = "zklock/1 ?[0-9a-f-]{0,40}(\n(host|pid|thread|label|new)?=?.{0,20}){0,6}";
    prop_oneof![vec(any::<u8>(), 0..200), ours.prop_map(String::into_bytes)]
}

proptest! {
    #[test]
    fn any_data_is_read(data in data(), stat: [i64; 3]) {
        let [ctime, czxid, ephemeral_owner] = stat;
        let stat = Stat { ctime, czxid, ephemeral_owner, ..Stat::default() };
        let contender = read("/lock/a".to_owned(), &data, &stat);
        prop_assert_eq!((contender.session, contender.token), (ephemeral_owner, czxid));
        for text in [&contender.host, &contender.thread, &contender.label] {
            prop_assert_eq!(&one_line(text), text);
        }
        prop_assert!(!contender.to_string().is_empty());
        if let Some(uuid) = uuid(&data) {
            // The first line says it, in one of the ways to write a uuid.
            let text = String::from_utf8(data).unwrap();
            let said = text.lines().next().unwrap().strip_prefix(MAGIC).unwrap();
            prop_assert_eq!(said.parse(), Ok(uuid));
        }
    }

    #[test]
    fn what_was_written_is_read_as_ours_and_as_no_other_claims(
        bits in any::<(u128, u128)>(), label in ".*|(.|\n|=){0,300}"
    ) {
        let (own, other) = (Uuid::from_u128(bits.0), Uuid::from_u128(bits.1));
        let data = write(own, &label, None);
        prop_assert_eq!(uuid(&data), Some(own));
        prop_assert!(own == other || uuid(&data) != Some(other));
        let contender = read(String::new(), &data, &Stat::default());
        prop_assert_eq!(contender.label, one_line(&label));
        prop_assert_eq!(contender.pid, std::process::id());
    }
}
